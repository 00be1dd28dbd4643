#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw every figure that a run's data allow; say which are skipped and why."""
import sys

import command
import fig_cdf
import fig_components
import fig_hops
import fig_paths
import fig_proxy
import fig_size

FIGURES = {"paths": fig_paths, "size": fig_size, "components": fig_components, "cdf": fig_cdf,
           "hops": fig_hops, "proxy": fig_proxy}

if __name__ == "__main__":
    sys.exit(command.draw_all(FIGURES, __doc__))
