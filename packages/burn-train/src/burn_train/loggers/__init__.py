"""Loggers: rows of epochs, and values inside them, in memory and in files."""

from burn_train.loggers.files import CsvLogger as CsvLogger, FileLogger as FileLogger
from burn_train.loggers.memory import MemoryLogger as MemoryLogger
from burn_train.loggers.tensorboard import TensorBoardLogger as TensorBoardLogger

__all__ = ["CsvLogger", "FileLogger", "MemoryLogger", "TensorBoardLogger"]
