"""What a person sees while a model trains, chosen by where the output goes."""

from burn_train.views.choose import (
    API_VERSION as API_VERSION,
    VIEWS as VIEWS,
    choose_view as choose_view,
)
from burn_train.views.plain import PlainView as PlainView
from burn_train.views.progress import ProgressView as ProgressView

__all__ = ["API_VERSION", "VIEWS", "PlainView", "ProgressView", "choose_view"]
