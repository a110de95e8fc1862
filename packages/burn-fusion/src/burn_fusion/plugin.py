"""Entry point `fusion` of `burn.decorators`: puts a recorder in front of a backend."""

from __future__ import annotations

from burn_backend import API_VERSION, Backend
from burn_fusion.backend import FusionBackend


class FusionDecorator:
    """Makes `fusion-<backend>` devices."""

    name = "fusion"
    api_version = API_VERSION
    about = "records operations and runs them as plans"

    def backend(self, inner: Backend) -> FusionBackend:
        """Return the backend behind a recorder."""
        return FusionBackend(inner)


decorator = FusionDecorator()
