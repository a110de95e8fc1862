"""Layers and losses under PyTorch's names, arguments, defaults and layouts."""

from burn_core import Buffer as Buffer, Module as Module, Parameter as Parameter, init as init
from burn_nn.activation import (
    CELU as CELU,
    ELU as ELU,
    GELU as GELU,
    GLU as GLU,
    SELU as SELU,
    Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish,
    Hardtanh as Hardtanh,
    LeakyReLU as LeakyReLU,
    LogSigmoid as LogSigmoid,
    LogSoftmax as LogSoftmax,
    Mish as Mish,
    PReLU as PReLU,
    ReLU as ReLU,
    ReLU6 as ReLU6,
    Sigmoid as Sigmoid,
    SiLU as SiLU,
    Softmax as Softmax,
    Softmin as Softmin,
    Softplus as Softplus,
    Softshrink as Softshrink,
    Softsign as Softsign,
    Tanh as Tanh,
    Tanhshrink as Tanhshrink,
    Threshold as Threshold,
)
from burn_nn.containers import Sequential as Sequential
from burn_nn.conv import Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d
from burn_nn.dropout import Dropout as Dropout, Dropout1d as Dropout1d, Dropout2d as Dropout2d
from burn_nn.linear import Flatten as Flatten, Identity as Identity, Linear as Linear
from burn_nn.loss import (
    BCELoss as BCELoss,
    BCEWithLogitsLoss as BCEWithLogitsLoss,
    CrossEntropyLoss as CrossEntropyLoss,
    HuberLoss as HuberLoss,
    KLDivLoss as KLDivLoss,
    L1Loss as L1Loss,
    MSELoss as MSELoss,
    NLLLoss as NLLLoss,
    SmoothL1Loss as SmoothL1Loss,
)
from burn_nn.norm import (
    BatchNorm1d as BatchNorm1d,
    BatchNorm2d as BatchNorm2d,
    BatchNorm3d as BatchNorm3d,
    LayerNorm as LayerNorm,
)
from burn_nn.pooling import (
    AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AvgPool2d as AvgPool2d,
    MaxPool2d as MaxPool2d,
)
