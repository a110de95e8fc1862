"""Metrics: sums kept on the device or gathered on the host, right over a partial last batch."""

from burn_train.metrics.calibration import CalibrationError as CalibrationError
from burn_train.metrics.classification import (
    Accuracy as Accuracy,
    HammingScore as HammingScore,
    Perplexity as Perplexity,
    TopKAccuracy as TopKAccuracy,
)
from burn_train.metrics.confusion import (
    ConfusionMatrix as ConfusionMatrix,
    FBetaScore as FBetaScore,
    Precision as Precision,
    Recall as Recall,
)
from burn_train.metrics.detection import MeanAveragePrecision as MeanAveragePrecision
from burn_train.metrics.gauges import (
    CpuMemory as CpuMemory,
    CpuTemperature as CpuTemperature,
    CpuUse as CpuUse,
    DeviceMemory as DeviceMemory,
    Gauge as Gauge,
    IterationSpeed as IterationSpeed,
    LearningRate as LearningRate,
)
from burn_train.metrics.image import MSSSIM as MSSSIM, PSNR as PSNR, SSIM as SSIM
from burn_train.metrics.metric import (
    HostMetric as HostMetric,
    LossMetric as LossMetric,
    Metric as Metric,
    SumMetric as SumMetric,
)
from burn_train.metrics.ranking import AUCPR as AUCPR, AUROC as AUROC
from burn_train.metrics.regression import MAE as MAE, MSE as MSE, RMSE as RMSE, R2Score as R2Score
from burn_train.metrics.segmentation import Dice as Dice, MeanIoU as MeanIoU
from burn_train.metrics.text import (
    BLEU as BLEU,
    CharErrorRate as CharErrorRate,
    RougeL as RougeL,
    WordErrorRate as WordErrorRate,
)

__all__ = [
    "AUCPR",
    "AUROC",
    "BLEU",
    "MAE",
    "MSE",
    "MSSSIM",
    "PSNR",
    "RMSE",
    "SSIM",
    "Accuracy",
    "CalibrationError",
    "CharErrorRate",
    "ConfusionMatrix",
    "CpuMemory",
    "CpuTemperature",
    "CpuUse",
    "DeviceMemory",
    "Dice",
    "FBetaScore",
    "Gauge",
    "HammingScore",
    "HostMetric",
    "IterationSpeed",
    "LearningRate",
    "LossMetric",
    "MeanAveragePrecision",
    "MeanIoU",
    "Metric",
    "Perplexity",
    "Precision",
    "R2Score",
    "Recall",
    "RougeL",
    "SumMetric",
    "TopKAccuracy",
    "WordErrorRate",
]
