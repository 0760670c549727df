"""How well the cheap look at a page's orientation does on real pages: suspicions of upright pages, turned pages found.

    python bench/orientation.py [--data ../shared/data/quality]

Each first page is looked at as it is and turned by 90, 180 and 270 degrees. It must suspect no upright page (each costs
a second reading); a turned page that it does not suspect is read as it lies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path

from pagemill.conversion.ink import measure_ink
from pagemill.conversion.orientation import turned, turns_to_try
from pagemill.documents import RenderPool, resolve_sources

UPRIGHT = (0,)


async def measure(data: Path) -> dict[str, object]:
    """Looks at every document of a folder."""
    suspected, blank = [], []
    found = dict.fromkeys((90, 180, 270), 0)
    pages, seconds = 0, 0.0
    async with RenderPool() as pool:
        for source in resolve_sources([str(data)], spool_folder=data):
            info = await pool.inspect(source)
            image = await pool.render(source, info.pages[0])
            started = time.perf_counter()
            turns = turns_to_try(image)
            seconds += time.perf_counter() - started
            pages += 1
            if turns != UPRIGHT:
                suspected.append(source.name)
            if measure_ink(image).is_blank:
                blank.append(source.name)
            for degrees in found:
                found[degrees] += (360 - degrees) % 360 in turns_to_try(turned(image, degrees))
    return {
        "pages": pages,
        "upright_suspected": suspected,
        "turned_found": found,
        "blank": blank,
        "seconds_a_page": round(seconds / pages, 4),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/quality"))
    print(json.dumps(asyncio.run(measure(parser.parse_args().data)), indent=2))
