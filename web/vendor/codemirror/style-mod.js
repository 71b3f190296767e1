// Puts the styles of CodeMirror into constructed style sheets. The original adds a style element to a document, which a
// content security policy without 'unsafe-inline' refuses.

import { StyleModule as Original } from "./node_modules/style-mod/src/style-mod.js";

/** The sheet of each module that is in use. */
const sheets = new Map();

export class StyleModule extends Original {
  /** Later modules take precedence, and what the page has adopted itself takes precedence over all of them. */
  static mount(root, modules) {
    const wanted = [modules].flat().map(sheetOf);
    root.adoptedStyleSheets = [...wanted, ...root.adoptedStyleSheets.filter((sheet) => !wanted.includes(sheet))];
  }
}

function sheetOf(module) {
  if (!sheets.has(module)) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(module.getRules());
    sheets.set(module, sheet);
  }
  return sheets.get(module);
}
