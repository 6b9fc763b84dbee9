# SPDX-License-Identifier: Apache-2.0
"""Parts that programs do not import."""
