"""Training: learner, supervised loop, metrics, checkpoints, views."""

from burn_train.checkpoint import Checkpoints as Checkpoints
from burn_train.learner import Learner as Learner
from burn_train.metrics import Accuracy as Accuracy, LossMetric as LossMetric, Metric as Metric
from burn_train.training import (
    SupervisedTraining as SupervisedTraining,
    TrainingResult as TrainingResult,
)
from burn_train.views import (
    API_VERSION as API_VERSION,
    VIEWS as VIEWS,
    PlainView as PlainView,
    ProgressView as ProgressView,
    View as View,
)

__all__ = [
    "API_VERSION",
    "VIEWS",
    "Accuracy",
    "Checkpoints",
    "Learner",
    "LossMetric",
    "Metric",
    "PlainView",
    "ProgressView",
    "SupervisedTraining",
    "TrainingResult",
    "View",
]
