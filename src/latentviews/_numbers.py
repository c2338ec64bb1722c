"""Numbers that many modules need."""

import numpy as np

TINY = np.finfo(float).tiny
