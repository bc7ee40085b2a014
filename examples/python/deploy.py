"""Fetches the optimized form of many models from one server, as a deployment would.

usage: deploy.py HOST:PORT FOLDER MODEL.onnx...
Remembered answers come at once; the others are searched for, side by side. Ctrl-C cancels what this
program submitted.
"""

import asyncio
import sys
from pathlib import Path
from typing import List

from autograph import AsyncClient, AutoGraphError


async def deploy(client: AsyncClient, model: Path, folder: Path) -> bool:
    """Writes FOLDER/MODEL; returns whether there is an answer."""
    try:
        result = await client.cached(model)
        if result is None:
            job = await client.submit(model)
            try:
                async for state in client.watch(job):
                    best = state.progress.best_speedup
                    print(f"{model.name}: {state.state} {state.progress.stage}, best {best:.2f}x")
            except asyncio.CancelledError:
                await client.cancel(job)
                raise
            result = await client.result(job)
    except AutoGraphError as error:
        print(f"{model.name}: {error}", file=sys.stderr)
        return False
    where = result.save(folder / model.name)
    how = "remembered" if result.cached else "searched"
    print(f"{model.name}: {result!r} ({how}), written to {where}")
    return True


async def main(server: str, folder: Path, models: List[Path]) -> int:
    """Returns the exit code: 1 when a model has no answer."""
    folder.mkdir(parents=True, exist_ok=True)
    async with AsyncClient(server) as client:
        done = await asyncio.gather(*(deploy(client, model, folder) for model in models))
    return 0 if all(done) else 1


if __name__ == "__main__":
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(asyncio.run(main(sys.argv[1], Path(sys.argv[2]), list(map(Path, sys.argv[3:])))))
