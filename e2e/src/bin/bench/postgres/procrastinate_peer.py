"""procrastinate as a peer of `bench postgres`: prints how many seconds something took.

python procrastinate_peer.py URL creates CLIENTS COUNT SIZE   jobs that are deferred one by one, by so many at a time
python procrastinate_peer.py URL tasks WIDTH COUNT            jobs that each run `true`, so many at a time
"""

import asyncio
import sys
import time

from procrastinate import App, PsycopgConnector

url, what, clients, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
pool = clients if what == "creates" else 10
app = App(connector=PsycopgConnector(conninfo=url, min_size=pool, max_size=pool))
done = 0


@app.task(name="nothing")
async def nothing(filler):
    pass


@app.task(name="run")
async def run():
    global done
    process = await asyncio.create_subprocess_exec("true")
    if await process.wait() != 0:
        raise RuntimeError("it failed")
    done += 1


async def add(size):
    payload, numbers = "x" * size, iter(range(count))

    async def client():
        for _ in numbers:
            await nothing.defer_async(filler=payload)

    await asyncio.gather(*(client() for _ in range(clients)))


async def main():
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await app.connector.pool.wait()
        begun = time.monotonic()
        if what == "creates":
            await add(int(sys.argv[5]))
        else:
            for added in range(0, count, 1000):
                await run.batch_defer_async(*({} for _ in range(min(1000, count - added))))
            await app.run_worker_async(concurrency=clients, wait=False, install_signal_handlers=False)
            if done != count:
                raise RuntimeError(f"{done} of {count} jobs ran")
        print("took", time.monotonic() - begun)


asyncio.run(main())
