"""What all that the API shows has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class View(BaseModel):
    """Read from the service's own objects; times are Unix seconds."""

    model_config = ConfigDict(from_attributes=True)
