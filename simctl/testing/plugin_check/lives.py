"""Call a plugin's functions for their own sake."""

from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.drive import Driver
from simctl.testing.plugin_check.trials import IDLE, scenario_text
from simctl.world import World


def call_directly(bench: Bench, model: str) -> None:
    """Call functions for their own sake, in a cluster that itself runs without the plugin."""
    observer = bench.observers[model]

    def prepare(world: World) -> None:
        hooks = world.site.hooks
        hooks.types = {**hooks.types, bench.plugin_class: bench.kind.plugin_type}
        Driver(world, bench.plugin_class, observer).start()

    bench.run(IDLE.name, scenario_text(IDLE, {}, model), model=model, prepare=prepare)
