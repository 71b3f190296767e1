//! Links lead somewhere: those of all documents, with their anchors, and the pages of `docs/` that other files name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn every_link_of_a_document_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let links: Vec<_> = pages.iter().flat_map(|(file, page)| page.links.iter().map(move |link| (file, link))).collect();
    assert!(links.len() > 200, "there are only {} links", links.len());
    let broken: Vec<_> = links.into_iter().filter(|(file, link)| !holds(&pages, file, link)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_of_docs_that_a_file_names_exists() {
    let (pages, root) = (pages(), Path::new("ARCHITECTURE.md"));
    let mut named = 0;
    for file in files() {
        // Fixtures are other people's text, and binary files none at all.
        if file.components().any(|part| part.as_os_str() == "fixtures") {
            continue;
        }
        let Ok(text) = fs::read_to_string(Path::new(ROOT).join(&file)) else { continue };
        for name in names_of_pages(&text) {
            named += 1;
            assert!(holds(&pages, root, name), "{} names {name}", file.display());
        }
    }
    assert!(named > 50, "only {named} pages are named");
}

#[test]
fn the_site_has_every_page_of_docs() {
    let mut pages = pages();
    let summary = pages.remove(Path::new("docs/SUMMARY.md")).unwrap();
    let missing: Vec<_> = pages
        .keys()
        .filter_map(|file| file.strip_prefix("docs").ok()?.to_str())
        .filter(|name| !summary.links.iter().any(|link| link == name))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not link {missing:?}");
}

#[test]
fn anchors_are_those_of_github() {
    let page = Page::read(
        "# The handler's `airlock serve` & *more*\n## A_b, c-d: é?\nSetext\n---\n## Same\n## Same\n## Same 1\n\
         <a id=\"by-hand\"></a> [link](x.md#y) <img src=\"z.png\">\n\n| a |\n|---|\n| [cell](t.md) |\n",
    );
    let anchors = ["a_b-c-d-é", "by-hand", "same", "same-1", "same-1-1", "setext", "the-handlers-airlock-serve--more"];
    assert_eq!(page.anchors, anchors.map(String::from).into());
    assert_eq!(page.links, ["x.md#y", "z.png", "t.md"]);
}

/// The anchors of a document, and its links.
#[derive(Default)]
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

impl Page {
    fn read(text: &str) -> Self {
        let (mut page, mut heading) = (Self::default(), None::<String>);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.add_heading(&heading.take().unwrap_or_default()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Html(html) | Event::InlineHtml(html) => page.add_html(&html),
                Event::Text(text) | Event::Code(text) => heading.iter_mut().for_each(|heading| *heading += &text),
                _ => {}
            }
        }
        page
    }

    /// GitHub's rule: letters, digits, `-` and `_` in lower case, a `-` for each space, and a number from the second of
    /// the same on.
    fn add_heading(&mut self, heading: &str) {
        let lower = heading.trim().to_lowercase().replace(' ', "-");
        let base: String = lower.chars().filter(|c| c.is_alphanumeric() || ['-', '_'].contains(c)).collect();
        let numbered = (1..).map(|n| format!("{base}-{n}"));
        let free = [base.clone()].into_iter().chain(numbered).find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(free);
    }

    fn add_html(&mut self, html: &str) {
        let values = |name: &str| -> Vec<String> {
            html.split(name).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
        };
        self.anchors.extend([" id=\"", " name=\""].into_iter().flat_map(values));
        self.links.extend([" href=\"", " src=\"", " srcset=\""].into_iter().flat_map(values));
    }
}

/// Every document of the repository, by its path in it.
fn pages() -> BTreeMap<PathBuf, Page> {
    let documents = files().into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "md"));
    documents.map(|file| (file.clone(), Page::read(&fs::read_to_string(Path::new(ROOT).join(file)).unwrap()))).collect()
}

/// The files of the repository, without those that were built: there may be no Git to ask.
pub(crate) fn files() -> Vec<PathBuf> {
    let (mut files, mut dirs) = (Vec::new(), vec![PathBuf::from(ROOT)]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            let is_built = name.starts_with('.') || ["target", "dist", "node_modules"].contains(&name.as_str());
            match entry.file_type().unwrap() {
                _ if is_built => {}
                kind if kind.is_dir() => dirs.push(path),
                _ => files.push(path.strip_prefix(ROOT).unwrap().to_owned()),
            }
        }
    }
    files
}

/// The likes of `docs/<page>.md#<anchor>` in a text.
fn names_of_pages(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_alphanumeric() || "-_./#".contains(c);
    let names = text.match_indices("docs/").filter_map(move |(start, _)| {
        // Another project has documents, too.
        let before = text.get(..start)?;
        if before.ends_with('/') && !before.ends_with("../") {
            return None;
        }
        let rest = text.get(start..)?;
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        rest.get(..end)
    });
    names.map(|name| name.trim_end_matches('.')).filter(|name| name.contains(".md"))
}

/// Links to other sites hold; the tests do not ask them.
fn holds(pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> bool {
    if link.contains("://") || link.starts_with("mailto:") {
        return true;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = match path {
        "" => Some(from.to_owned()),
        path => resolved(from.parent().unwrap_or(Path::new("")), path),
    };
    target.is_some_and(|target| match anchor {
        Some(anchor) => pages.get(&target).is_some_and(|page| page.anchors.contains(anchor)),
        None => Path::new(ROOT).join(&target).exists(),
    })
}

/// A relative path without `..`, as long as it stays in the repository.
fn resolved(dir: &Path, path: &str) -> Option<PathBuf> {
    let mut resolved = dir.to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => resolved.push(name),
            Component::CurDir => {}
            Component::ParentDir if resolved.pop() => {}
            _ => return None,
        }
    }
    Some(resolved)
}
