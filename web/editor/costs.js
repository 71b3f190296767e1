// What lines cost: an amount beside the number of each, and a bar for its share.

import { GutterMarker, RangeSet, StateEffect, StateField, gutter } from "../vendor/codemirror/codemirror.js";

/** Other costs: each has a `line` from 1, a `share` in percent, a short `amount`, and a `text` that says more. */
export const setCosts = StateEffect.define();

class Cost extends GutterMarker {
  constructor(cost) {
    super();
    this.cost = cost;
  }

  eq(other) {
    return this.cost.text === other.cost.text && this.cost.share === other.cost.share;
  }

  toDOM() {
    const cost = document.createElement("div");
    const share = document.createElement("span");
    share.className = "cm-share";
    share.style.width = `${this.cost.share}%`;
    cost.className = "cm-cost";
    cost.title = this.cost.text;
    cost.append(share, this.cost.amount);
    return cost;
  }
}

const costs = StateField.define({
  create: () => RangeSet.empty,
  update(shown, { changes, effects, newDoc }) {
    const set = effects.findLast((effect) => effect.is(setCosts));
    return set === undefined ? shown.map(changes) : markers(set.value, newDoc);
  },
});

function markers(all, doc) {
  const known = all.filter(({ line }) => line >= 1 && line <= doc.lines);
  return RangeSet.of(known.map((cost) => new Cost(cost).range(doc.line(cost.line).from)), true);
}

/** The column of costs; `pointed` is called with the line that the pointer is on, and null when it leaves. */
export function costsOfLines(pointed) {
  const column = gutter({
    class: "cm-costs",
    markers: (view) => view.state.field(costs),
    domEventHandlers: {
      mouseover: (view, block) => pointed(view.state.doc.lineAt(block.from).number),
      mouseout: () => pointed(null),
    },
  });
  return [costs, column];
}
