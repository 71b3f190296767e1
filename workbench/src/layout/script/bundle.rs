//! Drivers of several files: what a script takes with `require('./NAME')` is put behind it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use crate::file::{Files, SCRIPT_BYTES_MAX, normal};

/// Maximum number of files that a script is made of, besides itself.
const MODULES_MAX: usize = 64;
/// A script with one of these brings modules of its own.
const OWN: [&str; 4] = ["function require", "require =", "(require,", "__webpack_require__"];

/// The script with all files that it requires, or what is wrong with them. Functions are hoisted, so that its own lines
/// stay where they are.
pub(in super::super) fn bundle(files: &dyn Files, root: &Path, below: &Path, text: String) -> Result<String, String> {
    if OWN.iter().any(|own| text.contains(own)) {
        return Ok(text);
    }
    let mut modules = Modules { files, root, numbers: BTreeMap::new(), functions: Vec::new(), bytes: text.len() };
    let names = modules.required(below, &text)?;
    if names.is_empty() {
        return Ok(text);
    }
    let mut bundle = format!("{text}\n");
    bundle += &require(&names);
    bundle += LOADER;
    let functions: Vec<String> =
        (0..modules.functions.len()).map(|number| format!("__airlockModule{number}")).collect();
    _ = writeln!(bundle, "function __airlockModules() {{ return [{}]; }}", functions.join(", "));
    modules.functions.iter().for_each(|function| bundle += function);
    if bundle.len() as u64 > SCRIPT_BYTES_MAX {
        return Err(format!("with the files that it requires, it has more than {SCRIPT_BYTES_MAX} bytes"));
    }
    Ok(bundle)
}

/// A function that finds a module, and runs it once. ES5, for networks that know no more.
const LOADER: &str = "function __airlockRequire(names, name) {
  if (!Object.prototype.hasOwnProperty.call(names, name)) throw new Error(\"Cannot find module '\" + name + \"'\");
  var number = names[name], cache = __airlockRequire.cache || (__airlockRequire.cache = {});
  if (!cache[number]) {
    cache[number] = { exports: {} };
    __airlockModules()[number](cache[number], cache[number].exports);
  }
  return cache[number].exports;
}
";

/// The files that a script requires, each as a function that fills its `exports`.
struct Modules<'a> {
    files: &'a dyn Files,
    root: &'a Path,
    numbers: BTreeMap<PathBuf, usize>,
    functions: Vec<String>,
    bytes: usize,
}

impl Modules<'_> {
    /// The files that the script at `below` requires, by the name that it has for each, and the numbers of them. What is
    /// not there is left to the script, which may ask for it in vain.
    fn required(&mut self, below: &Path, text: &str) -> Result<BTreeMap<String, usize>, String> {
        let mut names = BTreeMap::new();
        for name in required_names(text) {
            if let Some(number) = self.module(&below.parent().unwrap_or(Path::new("")).join(name))? {
                names.insert(name.to_owned(), number);
            }
        }
        Ok(names)
    }

    /// The number of a module, which is read if it was not yet.
    fn module(&mut self, path: &Path) -> Result<Option<usize>, String> {
        let path = normal(path);
        let with = |end: &str| PathBuf::from(format!("{}{end}", path.display()));
        let candidates = [path.clone(), with(".js"), with(".json"), path.join("index.js")];
        if let Some(number) = candidates.iter().find_map(|file| self.numbers.get(file)) {
            return Ok(Some(*number));
        }
        let read = |file: PathBuf| {
            let text = self.files.read_within(self.root, &file, SCRIPT_BYTES_MAX).ok()?;
            Some((file, text))
        };
        let Some((file, text)) = candidates.into_iter().find_map(read) else { return Ok(None) };
        let number = self.functions.len();
        self.bytes += text.len();
        if number >= MODULES_MAX || self.bytes as u64 > SCRIPT_BYTES_MAX {
            return Err(format!(
                "it requires more than {MODULES_MAX} files, or with them has more than {SCRIPT_BYTES_MAX} bytes"
            ));
        }
        self.numbers.insert(file.clone(), number);
        // Its place is kept, because files may require each other.
        self.functions.push(String::new());
        let is_json = file.extension().is_some_and(|extension| extension == "json");
        let names = if is_json { BTreeMap::new() } else { self.required(&file, &text)? };
        let body = if is_json { format!("module.exports = {text};") } else { text };
        let require = require(&names);
        if let Some(function) = self.functions.get_mut(number) {
            *function = format!("function __airlockModule{number}(module, exports) {{\n{require}{body}\n}}\n");
        }
        Ok(Some(number))
    }
}

/// The function `require` of one file.
fn require(names: &BTreeMap<String, usize>) -> String {
    let names: Vec<String> = names.iter().map(|(name, number)| format!("{name:?}: {number}")).collect();
    format!("function require(name) {{ return __airlockRequire({{ {} }}, name); }}\n", names.join(", "))
}

/// The names of other files in calls of `require`.
fn required_names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("require(").filter_map(|(at, call)| {
        let is_word = !text[..at].ends_with(|character: char| character.is_alphanumeric() || "_$.".contains(character));
        let argument = text[at + call.len()..].trim_start();
        let quote = argument.chars().next().filter(|quote| is_word && matches!(quote, '\'' | '"'))?;
        let (name, _) = argument[1..].split_once(quote)?;
        let is_plain =
            |name: &&str| name.chars().all(|character| character.is_ascii_graphic() && !"\"\\".contains(character));
        Some(name).filter(is_plain).filter(|name| name.starts_with("./") || name.starts_with("../"))
    })
}
