// Runs the real local engine for the interop tests: one JSON request a line in, one JSON answer a line out.
//
// The clock stands still at the instant of the last "clock" request. The random numbers in ids are always 1 and 2.
// Where a bank is opened with vectors, they are counts of words (see vectors.py, which computes the same).

import { createInterface } from "node:readline";

const SystemDate = Date;
let instant = null;

globalThis.Date = class extends SystemDate {
  constructor(...given) {
    if (given.length === 0 && instant !== null) super(instant);
    else super(...given);
  }
  static now() {
    return instant ?? SystemDate.now();
  }
};

globalThis.crypto.getRandomValues = (numbers) => {
  for (const place of numbers.keys()) numbers[place] = place + 1;
  return numbers;
};

const engine = await import("@oh-my-pi/pi-mnemopi");
const { runDiagnostics } = await import("@oh-my-pi/pi-mnemopi/diagnose");

const banks = new Map();
const SIZE = Number(process.env.VECTOR_SIZE ?? 24);

function vectorOf(text) {
  const counts = new Array(SIZE).fill(0);
  for (const word of text.toLowerCase().split(" ")) {
    let hash = 2166136261;
    for (const byte of new TextEncoder().encode(word)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
    counts[hash % SIZE] += 1 + ((hash >>> 8) % 7);
  }
  return counts;
}

engine.setEmbeddingProvider({ available: () => true, embed: (texts) => [texts.map(vectorOf)] });

const requests = {
  clock({ now }) {
    instant = now === null ? null : SystemDate.parse(now);
  },

  open({ path, name, options = {} }) {
    const scope = { bank: name, sessionId: name, channelId: name, authorId: "coding-agent", authorType: "agent" };
    banks.set(path, new engine.Mnemopi({ dbPath: path, ...scope, noEmbeddings: true, llm: false, ...options }));
  },

  close({ path }) {
    banks.get(path).close();
    banks.delete(path);
  },

  // Calls a method of the bank, or of its lower level where the name begins with "beam.".
  async call({ path, method, args }) {
    const bank = banks.get(path);
    const [name, owner] = method.startsWith("beam.") ? [method.slice(5), bank.beam] : [method, bank];
    const answer = await owner[name](...args);
    return answer instanceof Date ? answer.toISOString() : answer;
  },

  // Waits until the work that the engine does after a call has returned is done.
  async drain({ path }) {
    await banks.get(path).flushExtractions();
    await engine.flushExtractions();
  },

  // Several calls of one method in a row, each with the milliseconds that it took.
  async timed({ path, method, calls }) {
    const answers = [];
    for (const args of calls) {
      const start = performance.now();
      await requests.call({ path, method, args });
      answers.push(performance.now() - start);
    }
    return answers;
  },

  memory() {
    Bun.gc(true);
    return process.memoryUsage.rss();
  },

  diagnose({ path }) {
    return runDiagnostics({ dbPath: path });
  },

  // The characters that match a pattern, as first and last of each run.
  characters({ pattern }) {
    const wanted = new RegExp(`^${pattern}$`, "u");
    const runs = [];
    for (let code = 0; code < 0x110000; code += 1) {
      if (!wanted.test(String.fromCodePoint(code))) continue;
      if (runs.at(-1)?.[1] === code - 1) runs.at(-1)[1] = code;
      else runs.push([code, code]);
    }
    return runs;
  },

  lower({ texts }) {
    return texts.map((text) => text.toLowerCase());
  },

  order({ pairs }) {
    return pairs.map(([left, right]) => left.localeCompare(right));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...given } = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await requests[op](given)) ?? null };
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
