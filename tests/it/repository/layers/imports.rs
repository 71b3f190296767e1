//! Imports between the source files of a crate, read from the paths in its code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use syn::{
    ItemMod, ItemUse, PathSegment, UseTree,
    visit::{self, Visit},
};

/// A module as the names on the way to it: `["device", "record"]`; the crate root is empty.
pub(super) type Module = Vec<String>;

/// The modules that each module of a crate names, itself left out.
pub(super) type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Reads every file below `src`, a path relative to the workspace.
///
/// The crate root is left out: it re-exports what the modules define. So are imports between a module and those inside
/// it: the outer one introduces what the inner ones define.
pub(super) fn between_modules(src: &str) -> Imports {
    let sources = sources(src);
    let modules: BTreeSet<Module> = sources.keys().cloned().collect();
    sources
        .into_iter()
        .filter(|(module, _)| !module.is_empty())
        .map(|(module, text)| {
            let imported = imported(&module, &text, &modules);
            (module, imported)
        })
        .collect()
}

/// The text of each module of a crate.
pub(super) fn sources(src: &str) -> BTreeMap<Module, String> {
    let mut sources = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(src), &mut Module::new(), &mut sources);
    sources
}

fn read(dir: &Path, above: &mut Module, sources: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_root = ["lib", "mod"].contains(&name.as_str());
        above.push(name);
        if path.is_dir() {
            read(&path, above, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let module = &above[..above.len() - usize::from(is_root)];
            *sources.entry(module.to_vec()).or_default() += &fs::read_to_string(&path).unwrap();
        }
        above.pop();
    }
}

fn imported(module: &[String], text: &str, modules: &BTreeSet<Module>) -> BTreeSet<Module> {
    let mut paths = Paths::default();
    paths.visit_file(&syn::parse_file(text).unwrap());
    let mut found: BTreeSet<Module> = paths.0.into_iter().filter_map(|path| resolve(module, path, modules)).collect();
    found.retain(|other| !other.starts_with(module) && !module.starts_with(other));
    found
}

/// The module that a path leads into; none when it leads out of the crate.
fn resolve(module: &[String], path: Vec<String>, modules: &BTreeSet<Module>) -> Option<Module> {
    let mut path = path.into_iter().peekable();
    let mut base = match path.peek()?.as_str() {
        "crate" => Module::new(),
        "self" | "super" => module.to_vec(),
        child => {
            let child = [module, &[child.to_owned()]].concat();
            modules.contains(&child).then(|| module.to_vec())?
        }
    };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => _ = base.pop(),
            _ => base.push(name),
        }
    }
    while !modules.contains(&base) {
        base.pop();
    }
    Some(base)
}

/// Every path in a file, tests left out.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl Paths {
    fn add(&mut self, above: &[String], tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.add(&[above, &[path.ident.to_string()]].concat(), &path.tree),
            UseTree::Name(name) => self.0.push([above, &[name.ident.to_string()]].concat()),
            UseTree::Rename(name) => self.0.push([above, &[name.ident.to_string()]].concat()),
            UseTree::Glob(_) => self.0.push(above.to_vec()),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.add(above, item)),
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.add(&[], &item.tree);
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        let is_test = item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"));
        if !is_test {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = |segment: &PathSegment| segment.ident.to_string();
        if path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(names).collect());
        }
        visit::visit_path(self, path);
    }
}

/// The groups of modules that import each other, directly or through others.
pub(super) fn cycles(imports: &Imports) -> Vec<BTreeSet<Module>> {
    let reachable: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|module| (module, reach(module, imports))).collect();
    let mut cycles: Vec<BTreeSet<Module>> = Vec::new();
    for (module, reached) in &reachable {
        let mutual = reached.iter().filter(|other| reachable[*other].contains(module));
        let cycle: BTreeSet<Module> = mutual.map(|other| (*other).clone()).collect();
        if !cycle.is_empty() && !cycles.contains(&cycle) {
            cycles.push(cycle);
        }
    }
    cycles
}

fn reach<'a>(from: &Module, imports: &'a Imports) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = imports[from].iter().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(&imports[module]);
        }
    }
    reached
}
