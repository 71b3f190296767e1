// Fuzzes the codec of standard input as the page does, in Node.js, and prints its failures as JSON.

import { readFileSync } from "node:fs";

const [, , root] = process.argv;
const { limits, text, messages, count } = JSON.parse(readFileSync(0, "utf8"));
const { Sandbox } = await import(`${root}/web/playground/sandbox/sandbox.js`);
const { Campaign } = await import(`${root}/web/playground/fuzz/campaign.js`);
const sandbox = new Sandbox(readFileSync(`${root}/runtime/guest.wasm`), limits);
const campaign = Campaign.of(sandbox, { text, dialect: null }, { messages, count, seed: 1 });
for (const _ of campaign.steps());
campaign.shrink();
const failures = campaign.failures.map(({ message, failure }) => ({ line: failure.line, bytes: Buffer.from(message.payload).toString("hex") }));
process.stdout.write(JSON.stringify(failures));
