"""The order in which components start and stop: in parallel, each after those that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event

from infra.errors import StackError
from infra.local.stack.component import Component, StartsAfter, UsesAddresses


def with_dependencies(components: Sequence[Component], names: Collection[str]) -> list[Component]:
    """Return the named components and all components that they need, in the order of `components`.

    Raises StackError for an unknown name.
    """
    by_name = {component.name: component for component in components}
    wanted: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in by_name:
            raise StackError(f"Cannot start {name!r}: it is not a component. Choose from {', '.join(by_name)}.")
        if name not in wanted:
            wanted.add(name)
            queue.extend(by_name[name].needs)
    return [component for component in components if component.name in wanted]


def start_dependencies(component: Component) -> tuple[str, ...]:
    """Return the components that start before this one: those in `needs`, and those in `after` (optional)."""
    return (*component.needs, *(component.after if isinstance(component, StartsAfter) else ()))


def dependents(components: Sequence[Component], names: Collection[str]) -> set[str]:
    """Return the other components whose configuration has the address of one of `names`, directly or indirectly."""
    return _reached(names, {component.name: _address_dependencies(component) for component in components})


def _address_dependencies(component: Component) -> tuple[str, ...]:
    """Return the components whose addresses a component's configuration has."""
    return (*component.needs, *(component.uses if isinstance(component, UsesAddresses) else ()))


def started_after(components: Sequence[Component], names: Collection[str]) -> set[str]:
    """Return the other components that start after one of `names`, directly or indirectly."""
    return _reached(names, {component.name: start_dependencies(component) for component in components})


def _reached(names: Collection[str], edges: Mapping[str, Collection[str]]) -> set[str]:
    found = set(names)
    grown = True
    while grown:
        more = {name for name, others in edges.items() if found.intersection(others)} - found
        grown = bool(more)
        found |= more
    return found - set(names)


def run_in_order(order: Mapping[str, Collection[str]], work: Callable[[str], None], stop: Event) -> None:
    """Call `work(name)` in parallel, for each name after the names that it waits for are finished.

    After the first failure or an interruption no more work starts and `stop` is set; the failure is raised when the
    work in progress has ended.
    """
    left = {name: {other for other in others if other in order} for name, others in order.items()}
    running: dict[Future[None], str] = {}
    failure: BaseException | None = None
    with ThreadPoolExecutor(max_workers=max(len(left), 1)) as pool:
        try:
            while left or running:
                for name in [name for name, others in left.items() if not others and not stop.is_set()]:
                    del left[name]
                    running[pool.submit(work, name)] = name
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(future)
                    error = future.exception()
                    if error is not None:
                        failure = failure or error
                        stop.set()
                    for others in left.values():
                        others.discard(name)
        except BaseException:
            stop.set()  # Ctrl-C: the threads check the event, and the pool waits for them
            raise
    if failure is not None:
        raise failure
    if left and not stop.is_set():
        raise StackError(f"Cannot order {', '.join(left)}: each waits for another one of them.")
