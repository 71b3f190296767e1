// What the editor uses of CodeMirror; the rest is not in the bundle.

export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { javascriptLanguage } from "@codemirror/lang-javascript";
export { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { EditorState, RangeSet, StateEffect, StateField } from "@codemirror/state";
export {
  Decoration, EditorView, GutterMarker, WidgetType, drawSelection, gutter, gutterLineClass, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers,
} from "@codemirror/view";
export { tags } from "@lezer/highlight";
