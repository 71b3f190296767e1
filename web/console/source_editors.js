// Makes editors of the functions on a page, which are text areas without this file. The editor is that of the playground,
// from where the server has it: browsers ask each time whether it is still the same.

import { CodeEditor } from '/console/playground/editor/code_editor.js';

for (const area of document.querySelectorAll('.code textarea')) {
  const editor = new CodeEditor(area);
  const { failedLine, failure } = area.dataset;
  if (failedLine === undefined) continue;
  editor.mark({ line: Number(failedLine), message: failure });
  editor.show(Number(failedLine));
}
