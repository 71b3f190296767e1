// A folder, or files: its codecs, what each returns for its examples, and what is changed and saved there.

import { takeDropped, takeFiles, pickFiles, pickFolder } from "../folder/pick.js";
import { saveFolder } from "../folder/save.js";
import { Workbench } from "../workbench/workbench.js";
import { CodecsView } from "./codecs.js";
import { counted, element, shown } from "./element.js";
import { problemsView, testedView, totals } from "./tested.js";

/** The pause in typing after which examples run again, in milliseconds. */
const DELAY_MS = 400;

export class FolderView {
  #part;
  #page;
  #workbench;
  #folder = null;
  #codecs = [];
  #table;
  /** The codec in the editor: its `origin`, whether its text `isFile`, and the text when it was last looked at. */
  #open = null;
  /** The choice of a codec that was made last: an older one is not opened any more. */
  #choice = null;
  /** The file with examples that is shown. */
  #file = null;
  #timer = null;
  #isTesting = false;
  #isTestWanted = false;
  #isSaving = false;
  /** How often a file was changed. */
  #changes = 0;

  /**
   * The part in `details`. `page` has `codec()`, `goTo`, and `open` for a codec, which hears whether a file keeps the one
   * before; `sandbox` has the guest and its limits.
   */
  constructor(details, sandbox, page) {
    [this.#part, this.#page, this.#workbench] = [details, page, new Workbench(sandbox)];
    this.#table = new CodecsView(this.#by("folder-codecs"), sandbox, (place) => this.#choose(place));
    const [folders, files] = [this.#by("folder-input"), this.#by("files-input")];
    this.#by("folder-open").onclick = () => this.#take(pickFolder, folders);
    this.#by("files-open").onclick = () => this.#take(pickFiles, files);
    for (const input of [folders, files]) input.onchange = () => this.#taken(input);
    this.#by("folder-codec").onchange = ({ target }) => this.#choose(Number(target.value));
    this.#by("folder-file").onchange = ({ target }) => this.#show(target.value);
    this.#by("folder-text").oninput = ({ target }) => this.#write(this.#file, target.value);
    this.#by("folder-update").onclick = () => this.#trying(() => this.#update());
    this.#by("folder-add").onclick = () => this.#trying(() => this.#add());
    this.#by("folder-ci").onclick = () => this.#trying(() => this.#addCiFile());
    this.#by("folder-save").onclick = () => this.#trying(() => this.#save());
    const hasFiles = ({ dataTransfer }) => dataTransfer.types.includes("Files");
    details.ondragover = (event) => hasFiles(event) && event.preventDefault();
    details.ondrop = (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      const dropped = takeDropped(event.dataTransfer);
      this.#trying(async () => this.#opened(await dropped));
    };
    addEventListener("beforeunload", (event) => {
      if (this.#folder?.changed.length > 0) event.preventDefault();
    });
  }

  /** Hears that the text of the codec may be another. */
  changed() {
    if (this.#open === null) return;
    const { text } = this.#page.codec().sources;
    if (text === this.#open.text) return;
    this.#open.text = text;
    if (this.#open.isFile) this.#put(this.#open.origin.script, text);
    this.#later();
  }

  /** Hears that another codec is in the editor, which is none of this folder. */
  leave() {
    [this.#open, this.#choice] = [null, null];
    if (this.#folder === null) return;
    this.#by("folder-codec").value = "";
    this.#table.mark(null);
    this.#verdict("Another codec is in the editor.");
    this.#part.querySelector(".outcomes").replaceChildren();
    this.#by("folder-examples").hidden = true;
  }

  /**
   * Takes a new file with examples of a codec, if that is one of this folder, has none, and is the one in the editor,
   * with the script and the text that the examples are of: it is saved with the rest. Returns whether it did.
   */
  keep(name, content, codec) {
    const { script, examples } = this.#open?.origin ?? {};
    if (!this.#open?.isFile || examples !== null || script.split("/").pop() !== codec.script || this.#page.codec().sources.text !== codec.text) return false;
    const path = script.split("/").slice(0, -1).concat(name).join("/");
    if (this.#folder.has(path)) return false;
    this.#put(path, content);
    this.#trying(() => this.#list(script));
    return true;
  }

  #by(id) {
    return this.#part.querySelector(`#${id}`);
  }

  /** Opens what somebody picks; where the browser has no picker, its field for files has. */
  #take(pick, input) {
    this.#trying(async () => {
      const folder = await pick();
      return folder === undefined ? input.click() : this.#opened(folder);
    });
  }

  #taken(input) {
    this.#trying(async () => {
      const folder = input.files.length === 0 ? null : takeFiles(input.files);
      input.value = "";
      await this.#opened(folder);
    });
  }

  async #trying(act) {
    try {
      await act();
    } catch (error) {
      this.#say(error.message);
    }
  }

  async #opened(folder) {
    if (folder === null) return;
    const unsaved = this.#folder?.changed.length ?? 0;
    if (unsaved > 0 && !confirm(`${this.#folder.name} has ${counted(unsaved, "change")} that ${unsaved === 1 ? "is" : "are"} not saved. Open ${folder.name} all the same?`)) return;
    [this.#folder, this.#open, this.#choice, this.#file] = [folder, null, null, null];
    // What is shown is of the folder before: nothing that is typed there gets into a file of the same name in this one.
    this.#by("folder-body").hidden = true;
    this.#table.clear();
    this.#workbench.openFiles(folder.blobs());
    await this.#list(null);
  }

  /** Lists the codecs, and opens the one with a script, or the first. */
  async #list(script) {
    const folder = this.#folder;
    const heard = (count) => this.#say(`Reading ${folder.name}: ${counted(count, "file")} or messages…`);
    this.#say(`Reading ${folder.name}…`);
    const { codecs, problems } = await this.#workbench.codecs(heard);
    if (folder !== this.#folder) return;
    this.#codecs = codecs.map((codec) => ({ ...codec, name: codec.origin.id === "." ? folder.name : codec.origin.id }));
    const options = this.#codecs.map(({ name, layout, examples }, place) => {
      const what = layout === null ? "no examples" : `${counted(examples, "example")}, ${layout}`;
      return element("option", { value: String(place) }, `${name} (${what})`);
    });
    this.#by("folder-codec").replaceChildren(...options);
    this.#table.show(this.#codecs, folder.blobs());
    this.#part.querySelector(".problems").replaceChildren(...problemsView(problems));
    this.#by("folder-body").hidden = codecs.length === 0;
    this.#drawChanged();
    const unread = problems.length === 0 ? "" : ` ${counted(problems.length, "problem")} with files: see below.`;
    const found = `Found ${counted(codecs.length, "codec")} in ${folder.name}. ${codecs.length === 1 ? "It is in the editor." : "Choose one to open it in the editor."}`;
    this.#say(codecs.length === 0 ? `There are no codecs in ${folder.name}.${unread}` : `${found}${unread}`);
    if (codecs.length > 0) await this.#choose(Math.max(0, codecs.findIndex(({ origin }) => script !== null && origin.script === script)));
  }

  #choose(place) {
    return this.#trying(async () => {
      const [{ origin }, choice] = [this.#codecs[place], Symbol("choice")];
      this.#choice = choice;
      this.#by("folder-codec").value = String(place);
      const { text, isFile, dialect, uplinks, fields, files } = await this.#read(origin).catch((error) => {
        // The list says which codec is in the editor.
        if (choice === this.#choice) this.#by("folder-codec").value = String(this.#codecs.findIndex((codec) => codec.origin === this.#open?.origin));
        throw error;
      });
      // What has been typed since the workbench was asked is in the folder, unless it is in no file.
      const own = isFile ? await this.#folder.text(origin.script).catch(() => null) : null;
      if (choice !== this.#choice) return;
      const isKept = this.#open?.isFile === true;
      this.#open = null;
      this.#page.open({ name: origin.script ?? origin.id, text: own ?? text, dialect, uplinks, fields }, isKept);
      // The editor has line ends of its own.
      this.#open = { origin, isFile: own !== null, text: this.#page.codec().sources.text };
      this.#table.mark(place);
      this.#by("folder-part").hidden = own !== null;
      this.#by("folder-file").replaceChildren(...files.map((file) => element("option", { value: file }, file)));
      this.#by("folder-examples").hidden = files.length === 0;
      this.#part.querySelector(".outcomes").replaceChildren();
      await Promise.all([files.length === 0 ? null : this.#show(files[0]), this.#test()]);
    });
  }

  /** A codec, with its payloads. Somebody may have broken it: then it is its files, to be mended. */
  async #read(origin) {
    try {
      return await this.#workbench.openCodec(origin);
    } catch (error) {
      const { script, examples } = origin;
      if (script === null || !this.#folder.has(script)) throw error;
      const text = await this.#folder.text(script);
      this.#say(error.message);
      return { text, isFile: true, dialect: null, uplinks: [], fields: null, files: examples === null ? [] : [examples] };
    }
  }

  /** Shows a file with examples, to be changed. */
  async #show(file) {
    const area = this.#by("folder-text");
    this.#file = file;
    this.#by("folder-file").value = file;
    area.value = "";
    area.disabled = true;
    await this.#trying(async () => {
      const text = await this.#folder.text(file);
      if (file !== this.#file) return;
      area.value = text;
      area.disabled = false;
    });
  }

  #write(path, text) {
    this.#put(path, text);
    this.#later();
  }

  #put(path, text) {
    this.#changes += 1;
    this.#folder.edit(path, text);
    const blob = this.#folder.blob(path);
    this.#workbench.putFile(path, blob);
    this.#table.changed(path, blob);
    this.#drawChanged();
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#test(), DELAY_MS);
  }

  /** The text of the codec, if no file has it. */
  get #text() {
    return this.#open.isFile ? null : this.#open.text;
  }

  /** Runs the examples; while they run, they are not run again before they have ended. */
  async #test() {
    this.#isTestWanted = true;
    if (this.#isTesting) return;
    this.#isTesting = true;
    while (this.#isTestWanted && this.#open !== null) {
      this.#isTestWanted = false;
      const open = this.#open;
      const heard = (count) => this.#verdict(`Running: ${counted(count, "message")}…`);
      this.#verdict("Running…");
      const tested = await this.#workbench.testCodec(open.origin, this.#text, heard).catch(({ message }) => ({ message }));
      if (open === this.#open) this.#told(tested);
    }
    this.#isTesting = false;
  }

  #told({ message, report, problems }) {
    const outcomes = this.#part.querySelector(".outcomes");
    if (message !== undefined) {
      outcomes.replaceChildren();
      return this.#verdict(`The examples did not run: ${message}`);
    }
    const find = (file, line) => this.#trying(() => this.#find(file, line));
    const views = report === null ? [] : testedView(report, this.#page.goTo, find);
    outcomes.replaceChildren(...problemsView(problems), ...views);
    return this.#verdict(report === null ? "The codec cannot be read from its files." : totals(report));
  }

  /** Moves to a line of a file with examples. */
  async #find(file, line) {
    if (file !== this.#file) await this.#show(file);
    const area = this.#by("folder-text");
    const lines = area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
    area.scrollTop = (area.scrollHeight / lines.length) * Math.max(0, line - 3);
  }

  /** What the workbench makes of the open codec; null once another is open. Fails if files were changed meanwhile. */
  async #made(make) {
    const [open, changes] = [this.#open, this.#changes];
    const made = open === null ? null : await make(open.origin, this.#text);
    if (open !== this.#open) return null;
    if (changes !== this.#changes) throw new Error("Nothing was replaced, because a file has changed meanwhile: try again.");
    return made;
  }

  async #update() {
    const updated = await this.#made((origin, text) => this.#workbench.updateExamples(origin, text));
    if (updated === null) return;
    const { files, examples, left, problems } = updated;
    for (const file of files) await this.#replace(file);
    const reasons = left.map(([reason, count]) => ` ${counted(count, "example")} not: ${reason}.`).join("");
    const refused = problems.map(({ file, line, reason }) => ` ${file}, line ${line}: ${reason}.`).join("");
    this.#say(`${counted(examples, "example")} now expect${examples === 1 ? "s" : ""} what the codec returns.${reasons}${refused}`);
    if (this.#file !== null) await this.#show(this.#file);
    await this.#test();
  }

  /** Makes the payloads that are typed examples. */
  async #add() {
    const payloads = this.#page.codec().messages.map(({ port, payload }) => ({ port, payload: [...payload] }));
    const extended = await this.#made((origin, text) => this.#workbench.addExamples(origin, text, payloads));
    if (extended === null) return;
    const { file, added, left } = extended;
    if (file !== null) await this.#replace(file);
    const unstated = left === 0 ? "" : ` The codec returns nothing for ${counted(left, "payload")}: write ${left === 1 ? "that example" : "those examples"} by hand.`;
    this.#say(`${added === 0 ? "No payload is new" : `Added ${counted(added, "example")} to ${file.path}`}.${unstated}`);
    if (file === null) return;
    await this.#show(file.path);
    await this.#test();
  }

  /** Puts another text into a file, as the workbench gives it. */
  async #replace({ path, text }) {
    await this.#folder.text(path);
    this.#put(path, text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n"));
  }

  async #addCiFile() {
    const { path, text } = await this.#workbench.ciFile();
    if (this.#folder.has(path)) return this.#say(`${path} is there already.`);
    this.#put(path, text);
    return this.#say(`${path} is saved with the rest. GitHub reads it at the top of a repository; put the address of your Airlock into it.`);
  }

  async #save() {
    // Another time would find files that this one has begun to write.
    if (this.#isSaving) return;
    const folder = this.#folder;
    this.#isSaving = true;
    // The browser may ask first.
    this.#say("Saving…");
    try {
      const { written, downloaded, name } = await saveFolder(folder);
      const saved = written.length === 0 ? "" : `Saved ${written.join(", ")}. `;
      const loaded = name === null ? "" : `Downloaded ${name}, with ${downloaded.join(", ")}: put it where the rest is.`;
      this.#say(`${saved}${loaded}`.trim());
    } finally {
      // Some may be saved although another one cannot be.
      this.#isSaving = false;
      this.#drawChanged();
    }
  }

  #drawChanged() {
    const { changed } = this.#folder;
    const button = this.#by("folder-save");
    button.disabled = changed.length === 0;
    button.textContent = changed.length === 0 ? "Nothing to save" : `Save ${counted(changed.length, "file")}`;
    button.title = changed.join("\n");
  }

  #say(text) {
    this.#by("folder-said").textContent = shown(text);
  }

  #verdict(text) {
    this.#by("folder-verdict").textContent = shown(text);
  }
}
