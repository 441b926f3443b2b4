// Graphile Worker as a peer of `bench postgres`: prints how many seconds something took.
//
//   node graphile_worker.cjs URL MODULES creates CLIENTS COUNT SIZE   jobs that are added one by one, by so many at a time
//   node graphile_worker.cjs URL MODULES tasks WIDTH COUNT            jobs that each run `true`, so many at a time
const { spawn } = require("node:child_process");
const { createRequire } = require("node:module");

const [url, modules, what, first, second, size] = process.argv.slice(2);
const required = createRequire(`${modules}/`);
const { Logger, makeWorkerUtils, runOnce } = required("graphile-worker");
const { Pool } = required("pg");

const clients = Number(first);
const count = Number(second);
const logger = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});

function runTrue() {
  return new Promise((resolve, reject) => {
    const child = spawn("true", { stdio: "ignore" });
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`it ended with ${code}`))));
  });
}

async function add(utils) {
  const payload = { filler: "x".repeat(Number(size)) };
  let next = 0;
  const client = async () => {
    while (next < count) {
      next += 1;
      await utils.addJob("nothing", payload);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
}

async function addAll(utils) {
  for (let added = 0; added < count; added += 1000) {
    const length = Math.min(1000, count - added);
    await utils.addJobs(Array.from({ length }, () => ({ identifier: "run", payload: {} })));
  }
}

async function main() {
  const pgPool = new Pool({ connectionString: url, max: what === "creates" ? clients : 10 });
  const say = (error) => console.error(error.message);
  pgPool.on("error", say).on("connect", (connection) => connection.on("error", say));
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  if (what === "creates") {
    // Connections are there before the time begins, as for everybody.
    const held = await Promise.all(Array.from({ length: clients }, () => pgPool.connect()));
    held.forEach((connection) => connection.release());
  }
  const begun = process.hrtime.bigint();
  if (what === "creates") {
    await add(utils);
  } else {
    let done = 0;
    await addAll(utils);
    const run = async () => {
      await runTrue();
      done += 1;
    };
    await runOnce({ pgPool, logger, concurrency: clients, noHandleSignals: true, taskList: { run } });
    if (done !== count) throw new Error(`${done} of ${count} jobs ran`);
  }
  console.log(`took ${Number(process.hrtime.bigint() - begun) / 1e9}`);
  await utils.release();
  await pgPool.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
