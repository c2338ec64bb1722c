"""Display objects, in scikit-learn's convention: ``from_estimator`` computes, ``plot`` draws.

matplotlib is imported where it is used.
"""

from latentviews.plot._axes import offscreen_axes
from latentviews.plot.checks import DependenceDisplay, ResponsibilityDisplay, SpectrumDisplay
from latentviews.plot.comparison import ChangePointDisplay, DriftDisplay, WitnessDisplay
from latentviews.plot.components import ComponentDisplay
from latentviews.plot.densities import DensityDisplay
from latentviews.plot.item_profiles import ItemProfileDisplay
from latentviews.plot.memberships import MembershipDisplay
from latentviews.plot.sequences import ForecastDisplay, StateDisplay, TransitionDisplay
from latentviews.plot.topics import TopicDisplay
from latentviews.plot.view_densities import ViewDensities

__all__ = [
    "ChangePointDisplay",
    "ComponentDisplay",
    "DensityDisplay",
    "DependenceDisplay",
    "DriftDisplay",
    "ForecastDisplay",
    "ItemProfileDisplay",
    "MembershipDisplay",
    "ResponsibilityDisplay",
    "SpectrumDisplay",
    "StateDisplay",
    "TopicDisplay",
    "TransitionDisplay",
    "ViewDensities",
    "WitnessDisplay",
    "offscreen_axes",
]
