"""Who is split over what: the mesh, the axes that carry something, constraints on activations."""
import jax
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

from config import AXES

# Names of the mesh's axes in the program, in the order of AXES.
NAMES = ('stage', 'data', 'fsdp', 'seq', 'expert', 'tensor')


class Layout:
    """Axes of one device are left out of every spec: `batch` ... are None where nothing is split."""

    def __init__(self, config, devices):
        sizes = [config.mesh[a] for a in AXES]
        self.mesh = Mesh(np.array(devices).reshape(sizes), NAMES,
                         axis_types=(AxisType.Auto,) * len(NAMES))
        self.devices = len(devices)
        self.config = config
        size = dict(zip(NAMES, sizes))

        def axis(name):
            return name if size[name] > 1 else None
        # Outside of the experts their axis carries batch.
        self.batch = tuple(a for a in ('data', 'fsdp', 'expert') if size[a] > 1) or None
        self.fsdp, self.tensor, self.seq = axis('fsdp'), axis('tensor'), axis('seq')
        self.expert, self.stage = axis('expert'), axis('stage')
        self.in_pipeline = False

    def heads(self, count):
        """The axis of so many heads: none if tensor parallelism does not divide them."""
        return self.tensor if count % self.config.mesh.tensor == 0 else None

    def residual(self):
        both = (self.seq, self.tensor if self.config.sharding.residual_over_tensor else None)
        return (self.batch, tuple(a for a in both if a) or None, None)

    def sharding(self, spec, memory=None):
        if memory:
            return NamedSharding(self.mesh, spec, memory_kind=memory)
        return NamedSharding(self.mesh, spec)

    def constrain(self, x, *spec):
        """sharding.activation_constraints and, inside a pipeline's iteration, its own keys."""
        if self.devices == 1 or not self.config.sharding.activation_constraints:
            return x
        if self.in_pipeline:
            pipeline = self.config.pipeline
            if pipeline.constraints == 'none':
                return x
            if pipeline.constraints == 'replicate' and spec[0] != 'stage':
                spec = (None,) * len(spec)
            if not pipeline.trivial_constraints and not any(spec):
                return x
        return lax.with_sharding_constraint(x, self.sharding(P(*spec)))


def is_leaf(x):
    """Of a tree of definitions: (shape, spec ...)."""
    return isinstance(x, tuple) and isinstance(x[0], tuple)


def map_defs(f, tree):
    return jax.tree.map(f, tree, is_leaf=is_leaf)
