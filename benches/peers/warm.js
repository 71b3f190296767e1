// Runs codecs in V8 with one context for all messages, without isolation and without a time limit.
'use strict';
const vm = require('node:vm');
const { serve } = require('./serve');

// With an object of its own behind the globals, as contexts have it else, each use of a global would be a call.
const PLAIN = vm.constants?.DONT_CONTEXTIFY;
if (!PLAIN) {
  console.error('a warm context needs Node.js 20.18 or newer');
  process.exit(1);
}

serve(({ prelude, script, driver, messages }) => {
  const context = vm.createContext(PLAIN);
  const [, , decode] = [prelude, script, driver].map((text) => vm.runInContext(text, context));
  // Arrays of that context, which codecs can test for.
  const inputs = vm.runInContext('JSON.parse', context)(JSON.stringify(messages));
  return inputs.map(({ port, bytes }) => () => decode(bytes.slice(), port));
});
