// Runs codecs as servers on Node.js do: a new context and a time limit for every message.
'use strict';
const vm = require('node:vm');
const { serve } = require('./serve');

serve(({ script, call, messages }) => messages.map(({ port, bytes }) => () => {
  const context = vm.createContext({ bytes: bytes.slice(), payload: bytes.slice(), port, module: {}, exports: {} });
  return vm.runInContext(`${script}\n;JSON.stringify(${call})`, context, { timeout: 100 });
}));
