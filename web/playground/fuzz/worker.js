// Fuzzes a codec beside the page, which ends this worker when the codec changes.

import { Failure, Sandbox } from "../sandbox/sandbox.js";
import { Campaign } from "./campaign.js";

/** How often the page hears of it, in milliseconds. */
const REPORT_MS = 100;
/** After this time it ends with what it has, in milliseconds. */
const TIME_MS_MAX = 60_000;

let sandbox = null;

onmessage = ({ data }) => {
  if (data.guest !== undefined) {
    sandbox = new Sandbox(data.guest, data.limits);
    return;
  }
  try {
    fuzz(data, (report) => postMessage({ id: data.id, ...report }));
  } catch (error) {
    const reason = error instanceof Failure ? error.text : String(error);
    postMessage({ id: data.id, kind: "broken", reason });
  }
  postMessage({ id: data.id, kind: "done" });
};

function fuzz({ sources, messages, count, seed }, say) {
  const campaign = Campaign.of(sandbox, sources, { messages, count, seed });
  const report = (kind) => {
    const failures = campaign.failures.map(({ message, failure }) => ({ message, failure: plain(failure) }));
    say({ kind, done: campaign.done, failures, isTooExpensive: campaign.isTooExpensive });
  };
  const start = performance.now();
  let last = start;
  const isOver = () => {
    const now = performance.now();
    if (now - last >= REPORT_MS) {
      last = now;
      report("fuzzing");
    }
    return now - start > TIME_MS_MAX;
  };
  for (const _ of campaign.steps()) if (isOver()) break;
  campaign.shrink(isOver);
  report("fuzzed");
}

function plain({ slot, kind, line, column, text }) {
  return { slot, kind, line, column, text };
}
