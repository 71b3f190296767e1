// Messages behind lines, and the line that failed.

import { Decoration, EditorView, GutterMarker, RangeSet, StateEffect, StateField, WidgetType, gutterLineClass } from "../vendor/codemirror/codemirror.js";

/** More messages are left out: whoever writes them has a list of them as well. */
const NOTES_MAX = 100;

/** The failure that is marked, with its `line` and `message`; null for none. */
export const setFailure = StateEffect.define();
/** Other messages: each has a `line`, a `level` and a `message`. */
export const setRemarks = StateEffect.define();

class Note extends WidgetType {
  constructor(level, message) {
    super();
    [this.level, this.message] = [level, message];
  }

  eq(other) {
    return this.level === other.level && this.message === other.message;
  }

  toDOM() {
    const note = document.createElement("span");
    note.className = `cm-note cm-note-${this.level}`;
    note.textContent = this.message;
    return note;
  }

  ignoreEvent() {
    return false;
  }
}

class FailedNumber extends GutterMarker {
  elementClass = "cm-failed-number";
}

const FAILED_LINE = Decoration.line({ class: "cm-failed" });
const FAILED_NUMBER = new FailedNumber();

/** The decorations of what an effect sets; they move with their lines. */
function decorations(kind, ofValue) {
  return StateField.define({
    create: () => Decoration.none,
    update(shown, { changes, effects, newDoc }) {
      const set = effects.findLast((effect) => effect.is(kind));
      return set === undefined ? shown.map(changes) : Decoration.set(ofValue(set.value, newDoc), true);
    },
    provide: (field) => EditorView.decorations.from(field),
  });
}

function note(doc, { line, level, message }) {
  return Decoration.widget({ widget: new Note(level, message), side: 1 }).range(doc.line(line).to);
}

const isIn = (doc) => ({ line }) => line >= 1 && line <= doc.lines;

const failure = decorations(setFailure, (failed, doc) => {
  if (failed === null || !isIn(doc)(failed)) return [];
  return [FAILED_LINE.range(doc.line(failed.line).from), note(doc, { ...failed, level: "failed" })];
});

const remarks = decorations(setRemarks, (all, doc) => all.filter(isIn(doc)).slice(0, NOTES_MAX).map((one) => note(doc, one)));

const failedNumber = gutterLineClass.compute([failure], (state) => {
  const numbers = [];
  state.field(failure).between(0, state.doc.length, (from, _to, { spec }) => {
    if (spec.class !== undefined) numbers.push(FAILED_NUMBER.range(from));
  });
  return RangeSet.of(numbers);
});

const isInvalid = EditorView.contentAttributes.compute([failure], (state) => ({ "aria-invalid": String(state.field(failure).size > 0) }));

export const notesOnLines = [failure, remarks, failedNumber, isInvalid];
