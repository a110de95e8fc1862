"""The interpreter: runs a kernel in numpy, one array element a unit, and watches every access."""

from burn_cube.interpreter.machine import interpret as interpret
