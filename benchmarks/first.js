// From nothing to the first answer of the real engine: bun first.js BANK NAME QUERY
import { Mnemopi } from "@oh-my-pi/pi-mnemopi";

const [path, name, query] = process.argv.slice(2);
const scope = { bank: name, sessionId: name, channelId: name, authorId: "coding-agent", authorType: "agent" };
const bank = new Mnemopi({ dbPath: path, ...scope, noEmbeddings: true, llm: false });
const hits = await bank.recallEnhanced(query, 8, { includeFacts: true, channelId: name });
console.log(hits[0]?.id ?? null);
bank.close();
