// The source: a text area with numbers of lines, of which one can be marked.

import { element } from "./element.js";

const INDENT = "  ";
/** More remarks are left out: they are in the list as well. */
const REMARKS_MAX = 100;
const TAB_COLUMNS = 4;

export class Editor {
  #area;
  #gutter;
  #numbers;
  #mark;
  #remarks;
  #lines = 0;
  #marked = null;

  /** The editor in `container`; `changed` is called when its text is another. */
  constructor(container, changed) {
    this.#area = container.querySelector("textarea");
    this.#gutter = container.querySelector(".gutter .rows");
    this.#numbers = container.querySelector(".gutter pre");
    this.#mark = container.querySelector(".mark");
    this.#remarks = container.querySelector(".remarks .rows");
    this.#area.addEventListener("input", () => {
      this.#number();
      changed();
    });
    this.#area.addEventListener("scroll", () => this.#follow());
    // Only the source scrolls: browsers scroll whatever holds the focus.
    container.querySelector(".gutter").onscroll = ({ target }) => (target.scrollTop = 0);
    this.#area.addEventListener("keydown", (event) => this.#indent(event));
  }

  get text() {
    return this.#area.value;
  }

  set text(text) {
    this.#area.value = text;
    this.#area.setSelectionRange(0, 0);
    this.#area.scrollTop = 0;
    this.#number();
  }

  /** Marks a line, from 1; null marks none. */
  mark(line) {
    this.#marked = line;
    this.#mark.hidden = line === null;
    this.#area.setAttribute("aria-invalid", String(line !== null));
    this.#follow();
  }

  /** Writes messages behind lines: each has a `line`, a `level` and a `message`. */
  remark(remarks) {
    const lines = this.text.split("\n");
    const rows = remarks.slice(0, REMARKS_MAX).map(({ line, level, message }) => {
      const row = element("p", { class: level }, message);
      row.style.setProperty("--line", line);
      row.style.setProperty("--column", columnsOf(lines[line - 1] ?? "") + 2);
      return row;
    });
    this.#remarks.replaceChildren(...rows);
    this.#follow();
  }

  /** Moves the cursor to a line and column, from 1. */
  goTo(line, column) {
    const before = this.text.split("\n").slice(0, line - 1);
    const start = before.reduce((sum, one) => sum + one.length + 1, 0) + Math.max(0, (column ?? 1) - 1);
    this.#area.focus();
    this.#area.setSelectionRange(start, start);
    this.#area.scrollTop = Math.max(0, (line - 5) * this.#lineHeight);
  }

  /** Scrolls to a line that is out of sight. */
  reveal(line) {
    const top = (line - 1) * this.#lineHeight;
    const isInSight = top >= this.#area.scrollTop && top + 2 * this.#lineHeight <= this.#area.scrollTop + this.#area.clientHeight;
    if (!isInSight) this.#area.scrollTop = Math.max(0, top - 4 * this.#lineHeight);
    this.#follow();
  }

  get #lineHeight() {
    return parseFloat(getComputedStyle(this.#area).lineHeight);
  }

  #number() {
    let lines = 1;
    for (let at = this.text.indexOf("\n"); at >= 0; at = this.text.indexOf("\n", at + 1)) lines += 1;
    if (lines !== this.#lines) {
      this.#lines = lines;
      this.#numbers.textContent = Array.from({ length: lines }, (_, index) => index + 1).join("\n");
    }
    this.#follow();
  }

  /** Keeps the numbers and the mark beside their lines. */
  #follow() {
    const scrolled = this.#area.scrollTop;
    this.#gutter.style.transform = `translateY(${-scrolled}px)`;
    this.#remarks.style.transform = `translate(${-this.#area.scrollLeft}px, ${-scrolled}px)`;
    if (this.#marked === null) return;
    const height = this.#lineHeight;
    const padding = parseFloat(getComputedStyle(this.#area).paddingTop);
    this.#mark.style.height = `${height}px`;
    this.#mark.style.transform = `translateY(${padding + (this.#marked - 1) * height - scrolled}px)`;
  }

  /** Ctrl+] and Ctrl+[ move lines right and left; Tab moves on, as everywhere. */
  #indent(event) {
    if (!(event.ctrlKey || event.metaKey) || !["]", "["].includes(event.key)) return;
    event.preventDefault();
    const [start, end] = [this.text.lastIndexOf("\n", this.#area.selectionStart - 1) + 1, this.#area.selectionEnd];
    const lines = this.text.slice(start, end).split("\n");
    const moved = lines.map((line) => (event.key === "]" ? INDENT + line : line.replace(/^( {1,2}|\t)/, ""))).join("\n");
    this.#area.setRangeText(moved, start, end, "select");
    this.#area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** How many columns a line takes. */
function columnsOf(line) {
  let columns = 0;
  for (const character of line) columns += character === "\t" ? TAB_COLUMNS - (columns % TAB_COLUMNS) : 1;
  return columns;
}
