// The colours and sizes of the editor: those of `site.css`, in light and in dark.

import { EditorView, HighlightStyle, syntaxHighlighting, tags } from "../vendor/codemirror/codemirror.js";

const MONOSPACE = 'ui-monospace, "Cascadia Code", "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const OUTLINE = "1px solid var(--accent)";

const theme = EditorView.theme({
  "&": {
    maxHeight: "75vh",
    color: "var(--ink)",
    backgroundColor: "var(--paper)",
    border: "1px solid var(--edge)",
    borderRadius: ".375rem",
    overflow: "hidden",
  },
  "&.cm-focused": { outline: "3px solid var(--accent)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: MONOSPACE, fontSize: ".85rem", lineHeight: "1.25rem" },
  ".cm-content, .cm-gutter": { minHeight: "calc(var(--rows, 8) * 1.25rem + 1rem)" },
  ".cm-content": { padding: ".5rem 0", caretColor: "var(--ink)", outline: "2px solid transparent", outlineOffset: "-2px" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--line)" },
  ".cm-line": { padding: "0 .65rem" },
  ".cm-gutters": { color: "var(--faint)", backgroundColor: "var(--paper)", borderRight: "1px solid var(--line)" },
  ".cm-activeLineGutter": { color: "var(--ink)", backgroundColor: "transparent" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "1.75rem", padding: "0 .4rem" },
  ".cm-failed": { backgroundColor: "var(--bad-ground)", boxShadow: "inset .25rem 0 var(--bad)" },
  ".cm-gutterElement.cm-failed-number": { color: "var(--bad)", backgroundColor: "var(--bad-ground)", fontWeight: "600" },
  ".cm-note": { marginLeft: "2ch", unicodeBidi: "isolate", fontStyle: "italic", color: "var(--faint)", overflowWrap: "anywhere", userSelect: "none" },
  ".cm-note-error, .cm-note-failed": { color: "var(--bad)" },
  ".cm-cost": { position: "relative", zIndex: "0", padding: "0 .2rem", fontSize: ".75rem", textAlign: "right" },
  ".cm-costs .cm-gutterElement": { padding: "0" },
  ".cm-share": { position: "absolute", bottom: "0", left: "0", zIndex: "-1", minWidth: "2px", borderBottom: "2px solid var(--accent)" },
  "&.cm-focused .cm-matchingBracket, .cm-matchingBracket": { backgroundColor: "var(--note-ground)", outline: OUTLINE },
  "&.cm-focused .cm-nonmatchingBracket, .cm-nonmatchingBracket": { backgroundColor: "var(--bad-ground)", outline: "1px solid var(--bad)" },
  ".cm-selectionMatch": { backgroundColor: "var(--note-ground)" },
  ".cm-searchMatch": { backgroundColor: "var(--note-ground)", outline: OUTLINE },
  ".cm-searchMatch.cm-searchMatch-selected": { backgroundColor: "var(--note-ground)", outline: "2px solid var(--accent)" },
  ".cm-specialChar": { color: "var(--bad)" },
  ".cm-panels": { color: "var(--ink)", backgroundColor: "var(--ground)" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panel.cm-search": { padding: ".5rem 2.5rem .5rem .5rem" },
  ".cm-panel.cm-search input.cm-textfield": { width: "12rem", maxWidth: "100%", minHeight: "2rem", padding: ".1rem .5rem", font: "inherit", color: "inherit", backgroundColor: "var(--paper)", border: "1px solid var(--edge)" },
  ".cm-panel.cm-search .cm-button": { minHeight: "2rem", padding: ".1rem .6rem", fontSize: ".875rem", fontWeight: "400", color: "var(--accent)", background: "none", borderColor: "var(--edge)", borderRadius: ".375rem" },
  ".cm-panel.cm-search label": { display: "inline-flex", alignItems: "center", minHeight: "1.75rem", fontSize: ".875rem" },
  ".cm-panel.cm-search [name=close]": { top: ".5rem", right: ".5rem", minHeight: "2rem", width: "2rem", fontSize: "1.25rem", color: "var(--accent)", border: "0" },
});

const highlighting = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--line-7)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--line-2)" },
  { tag: [tags.regexp, tags.escape], color: "var(--line-5)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.definition(tags.propertyName)], color: "var(--line-3)" },
  { tag: [tags.comment], color: "var(--faint)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

export const look = [theme, syntaxHighlighting(highlighting)];
