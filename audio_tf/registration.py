"""Registers classes with Keras as soon as Keras is imported, not before.

`import audio_tf` imports no Keras, so that a help text or a client of a server
need not wait for it. Yet `keras.saving.load_model` must know the classes of
this package, in whatever order the two are imported: Keras itself does not
look for classes of other packages.
"""

import importlib
import sys


class RegisterAfterImport:
    """An import hook that imports modules once their host is there.

    The host may be imported by a module of the package that is itself half
    imported, so that the others could not import it. The modules are therefore
    imported at the end of the outermost import of a host or of a module of the
    package.

    Args:
        host: str, name of the package that classes are registered with.
        before: names of further packages. Whatever imports the host on their
            behalf, they are imported to their end first.
        package: str, name of the package that the modules are of.
        modules: names of the modules that register classes when imported.
    """

    def __init__(self, host, before, package, modules):
        self.host = host
        self.roots = {host, *before}
        self.package = package
        self.modules = modules
        self.depth = 0

    def install(self):
        """Waits for the host, or imports the modules now if it is there."""
        if self.host in sys.modules:
            self.register()
        else:
            sys.meta_path.insert(0, self)

    def register(self):
        """Imports the modules whose classes Keras has to know."""
        for module in self.modules:
            importlib.import_module(module)

    def find_spec(self, name, path=None, target=None):
        """Finds a module as the other finders do, and watches its import."""
        if name not in self.roots and not name.startswith(f"{self.package}."):
            return None
        for finder in sys.meta_path:
            spec = finder is not self and finder.find_spec(name, path, target)
            if spec:
                self.watch(spec.loader)
                return spec
        return None

    def watch(self, loader):
        """Counts an import as long as it lasts, and registers after all."""
        execute = loader.exec_module

        def exec_module(module):
            self.depth += 1
            try:
                execute(module)
            finally:
                self.depth -= 1
            if not self.depth and self.host in sys.modules:
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self.register()

        loader.exec_module = exec_module
