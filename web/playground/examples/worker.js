// Runs examples beside the page.

import { Failure, Sandbox } from "../sandbox/sandbox.js";
import { examplesOf } from "./examples.js";

let sandbox = null;

onmessage = ({ data }) => {
  if (data.guest !== undefined) {
    sandbox = new Sandbox(data.guest, data.limits);
    return;
  }
  const { id, sources, messages, downlink } = data;
  // So that only a message that takes too long is ended, and not many that take long together.
  const progress = () => postMessage({ id, kind: "running" });
  try {
    postMessage({ id, kind: "examples", examples: examplesOf(sandbox, sources, messages, downlink, progress) });
  } catch (error) {
    postMessage({ id, kind: "broken", reason: error instanceof Failure ? error.text : String(error) });
  }
  postMessage({ id, kind: "done" });
};
