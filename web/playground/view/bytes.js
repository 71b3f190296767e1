// The bytes of a payload and the fields of its result, each of which shows the other.

import { hexOf } from "../payload.js";
import { element, rove, shown } from "./element.js";

/** More fields than these are shown as JSON only. */
const FIELDS_MAX = 500;

/** Bytes and fields of a message. `show` adds where the fields came from, once that is known. */
export class BytesView {
  #payload;
  #leaves;
  #map = null;
  #bytes;
  #rows = new Map();
  #note = element("p", { class: "hint", role: "status" });

  constructor(payload, leaves) {
    this.#payload = payload;
    this.#leaves = leaves;
    this.#bytes = Array.from(payload, (byte, index) => this.#byte(byte, index));
  }

  /** The bytes, as a list of buttons. */
  get bytesElement() {
    const list = element("ul", { class: "bytes", "aria-label": "Bytes of the payload" }, ...this.#bytes.map((byte) => element("li", {}, byte)));
    rove(list, "button");
    return element("div", {}, list, this.#note);
  }

  /** The fields, as a table; null if there are none, or too many. */
  get fieldsElement() {
    if (this.#leaves.size === 0 || this.#leaves.size > FIELDS_MAX) return null;
    const body = element("tbody", {}, ...[...this.#leaves].map(([path, value]) => this.#row(path, value)));
    rove(body, "tr");
    const head = element("tr", {}, ...["Field", "Value", "Bytes"].map((name) => element("th", { scope: "col" }, name)));
    const table = element("table", { class: "fields", "aria-label": "Fields" }, element("thead", {}, head), body);
    return element("div", { class: "scroll" }, table);
  }

  /** Shows a map: for each byte whether it is read, whether it is structure, and its fields. */
  show(bytes, isComplete) {
    this.#map = bytes;
    bytes.forEach(({ isRead, isStructure }, index) => {
      this.#bytes[index].classList.toggle("unread", !isRead && isComplete);
      this.#bytes[index].classList.toggle("structure", isStructure);
      this.#bytes[index].setAttribute("aria-label", this.#describe(index));
    });
    this.#rows.forEach((row, path) => (row.lastElementChild.textContent = ranges(this.#bytesOf(path))));
    this.#note.textContent = this.#summary(isComplete);
  }

  #summary(isComplete) {
    if (!isComplete) return "These messages take too long to find out where each field came from.";
    const unread = this.#map.filter(({ isRead }) => !isRead).length;
    const all = this.#map.length;
    if (unread === 0) return all === 0 ? "" : "Every byte is read.";
    return `${unread} of ${all} bytes ${unread === 1 ? "is" : "are"} never read.`;
  }

  #byte(byte, index) {
    const button = element("button", { type: "button" }, hexOf([byte]));
    button.onmouseenter = button.onfocus = () => this.#relate([index], this.#map?.[index].fields ?? [], this.#describe(index));
    button.onmouseleave = button.onblur = () => this.#relate([], [], null);
    return button;
  }

  #row(path, value) {
    const row = element("tr", {}, element("th", { scope: "row" }, path), element("td", {}, value), element("td", { "data-label": "Bytes" }));
    row.onmouseenter = row.onfocus = () => this.#relate(this.#bytesOf(path), [path], this.#describeField(path));
    row.onmouseleave = row.onblur = () => this.#relate([], [], null);
    this.#rows.set(path, row);
    return row;
  }

  #bytesOf(path) {
    return (this.#map ?? []).flatMap(({ fields }, index) => (fields.includes(path) ? [index] : []));
  }

  /** Marks bytes and fields that belong together; `text` says so, null for none. */
  #relate(bytes, fields, text) {
    this.#bytes.forEach((button, index) => button.classList.toggle("related", bytes.includes(index)));
    this.#rows.forEach((row, path) => row.classList.toggle("related", fields.includes(path)));
    if (this.#map !== null) this.#note.textContent = text === null ? this.#summary(true) : shown(text);
  }

  #describe(index) {
    // The two digits stand alone: who speaks says what is seen.
    const name = `Byte ${index}, ${hexOf([this.#payload[index]])}`;
    if (this.#map === null) return name;
    const { isRead, isStructure, fields } = this.#map[index];
    if (!isRead) return `${name}: never read`;
    const parts = [fields.slice(0, 8).join(", ") + (fields.length > 8 ? ` and ${fields.length - 8} more` : ""), isStructure ? "decides which fields there are" : ""];
    return `${name}: ${parts.filter((part) => part !== "").join("; ") || "read"}`;
  }

  #describeField(path) {
    const bytes = this.#bytesOf(path);
    if (bytes.length === 0) return `${path}: from no byte of its own`;
    return `${path}: from ${bytes.length === 1 ? "byte" : "bytes"} ${ranges(bytes)}`;
  }
}

/** Ascending numbers, of which those that follow each other are one range. */
function ranges(numbers) {
  const found = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
}
