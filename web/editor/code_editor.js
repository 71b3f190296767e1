// A text area that is edited as JavaScript, with CodeMirror. The source stays in the area, so that forms send it as they
// would without this.

import {
  EditorState, EditorView, bracketMatching, defaultKeymap, drawSelection, highlightActiveLineGutter, highlightSelectionMatches,
  highlightSpecialChars, history, historyKeymap, indentOnInput, indentWithTab, javascriptLanguage, keymap, lineNumbers, search,
  searchKeymap,
} from "../vendor/codemirror/codemirror.js";
import { costsOfLines, setCosts } from "./costs.js";
import { look } from "./look.js";
import { notesOnLines, setFailure, setRemarks } from "./notes.js";

const TAB_COLUMNS = 4;

export class CodeEditor {
  #area;
  #view;
  #extensions;
  #changed;
  #isTabTaken = false;
  /** True if only the editor is to scroll next, and not the page around it. */
  #isPageStill = false;
  /** Called with the line, from 1, on which the cursor or the pointer is; with null when neither is on one. */
  onLine = () => {};

  /** The editor in place of a text area with a label; `changed` is called when somebody edits its text. */
  constructor(area, changed = () => {}) {
    [this.#area, this.#changed] = [area, changed];
    this.#extensions = [this.#parts(), EditorView.contentAttributes.of(this.#names())];
    // Whoever has begun to type before this has loaded goes on where they are.
    const isTyping = document.activeElement === area;
    const selection = isTyping ? { anchor: area.selectionStart, head: area.selectionEnd } : { anchor: 0 };
    this.#view = new EditorView({ doc: area.value, selection, extensions: this.#extensions });
    // Whoever uses a keyboard would not get past an editor that takes Tab.
    this.#view.setTabFocusMode(true);
    this.#view.dom.style.setProperty("--rows", area.rows);
    area.before(this.#view.dom);
    if (isTyping) this.#view.focus();
    area.hidden = true;
    // Browsers fill in what was typed before when somebody goes back to a page.
    addEventListener("pageshow", () => this.#take());
  }

  get text() {
    return this.#view.state.doc.toString();
  }

  /** Replaces the text, and moves to its beginning. Undo brings the older one back. */
  set text(text) {
    const { length } = this.#view.state.doc;
    const changed = this.#changed;
    this.#changed = () => {};
    this.#view.dispatch({ changes: { from: 0, to: length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
    this.#changed = changed;
  }

  /** Puts the text of another file in place: undo ends here, so that it does not bring one file's text into another. */
  open(text) {
    this.#view.setState(EditorState.create({ doc: text, extensions: this.#extensions }));
    this.#view.scrollDOM.scrollTop = 0;
    this.#area.value = this.text;
  }

  /** Marks the line of a failure, from 1, with its message; null marks none. */
  mark(failure) {
    this.#view.dispatch({ effects: setFailure.of(failure) });
  }

  /** Writes messages behind lines: each has a `line`, a `level` and a `message`. */
  remark(remarks) {
    this.#view.dispatch({ effects: setRemarks.of(remarks) });
  }

  /** Shows what lines cost, beside their numbers: each has a `line`, its `share` in percent, an `amount` and a `text`. */
  showCosts(costs) {
    this.#view.dispatch({ effects: setCosts.of(costs) });
  }

  /** Puts the cursor on a line, from 1, and scrolls the editor to it: neither the focus nor the page moves. */
  show(line) {
    const { from } = this.#line(line);
    this.#isPageStill = true;
    this.#view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  }

  /** Moves the cursor to a line and column, from 1. */
  goTo(line, column) {
    const { from, to } = this.#line(line);
    const anchor = Math.min(to, from + Math.max(0, (column ?? 1) - 1));
    this.#view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    this.#view.focus();
  }

  /** The line with this number, or the nearest that there is. */
  #line(number) {
    const { doc } = this.#view.state;
    return doc.line(Math.max(1, Math.min(number, doc.lines)));
  }

  /** The name and the descriptions of the area, for what takes its place. */
  #names() {
    const area = this.#area;
    const label = area.labels[0];
    label.id ||= `${area.id}-label`;
    label.addEventListener("click", () => this.#view.focus());
    const keys = document.getElementById("editor-keys");
    if (keys !== null) keys.hidden = false;
    const described = [area.getAttribute("aria-describedby"), keys?.id].filter(Boolean).join(" ");
    // Some programs that check pages do not know that whatever can be edited can be reached.
    return { id: `${area.id}-code`, tabindex: "0", "aria-labelledby": label.id, "aria-describedby": described };
  }

  #parts() {
    const tab = { key: "Ctrl-m", mac: "Shift-Alt-m", run: () => this.#toggleTab() };
    return [
      EditorState.readOnly.of(this.#area.readOnly),
      EditorState.tabSize.of(TAB_COLUMNS),
      EditorView.lineWrapping,
      costsOfLines((line) => this.onLine(line)),
      lineNumbers(),
      highlightActiveLineGutter(),
      // Without it, a cursor at the end of a wrapped line takes the focus from the search field that has just opened.
      drawSelection(),
      highlightSpecialChars(),
      history(),
      indentOnInput(),
      bracketMatching(),
      highlightSelectionMatches(),
      search({ top: true }),
      javascriptLanguage,
      keymap.of([tab, ...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
      EditorView.scrollHandler.of((view, { head }) => this.#scrollAlone(view, head)),
      EditorView.domEventHandlers({ beforeinput: replaceSelection }),
      notesOnLines,
      look,
      EditorView.updateListener.of((update) => this.#hear(update)),
    ];
  }

  #hear({ docChanged, selectionSet, focusChanged, view, state }) {
    if (docChanged) {
      this.#area.value = this.text;
      this.#changed();
    }
    if (selectionSet || focusChanged) this.onLine(view.hasFocus ? state.doc.lineAt(state.selection.main.head).number : null);
  }

  /** Scrolls the editor to a place in its text if the page is to stay where it is; otherwise, CodeMirror scrolls both. */
  #scrollAlone(view, place) {
    if (!this.#isPageStill) return false;
    this.#isPageStill = false;
    const { node } = view.domAtPos(place);
    const line = (node instanceof Element ? node : node.parentElement).closest(".cm-line").getBoundingClientRect();
    const { top, bottom } = view.scrollDOM.getBoundingClientRect();
    view.scrollDOM.scrollTop += (line.top + line.bottom - top - bottom) / 2;
    return true;
  }

  #take() {
    if (this.#area.value !== this.text) this.text = this.#area.value;
  }

  #toggleTab() {
    this.#isTabTaken = !this.#isTabTaken;
    this.#view.setTabFocusMode(!this.#isTabTaken);
    const said = this.#isTabTaken ? "Tab indents now." : "Tab leaves the editor now.";
    this.#view.dispatch({ effects: EditorView.announce.of(said) });
    return true;
  }
}

/**
 * Types over a selection, in place of the browser: Chromium gives what is typed the look of what was there, in a `style`
 * attribute, which a content security policy without 'unsafe-inline' refuses and reports.
 */
function replaceSelection(event, view) {
  const { data, inputType, isComposing } = event;
  if (inputType !== "insertText" || data === null || isComposing || view.composing || view.state.selection.main.empty) return false;
  if (!view.state.readOnly) view.dispatch(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}
