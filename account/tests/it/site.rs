//! The account site, as a browser without scripts sees it.

mod applications;
mod first_account;
mod forms;
mod gateways;
mod oauth_clients;
mod pages;
mod providers;
mod sessions;
mod users;

use std::collections::BTreeSet;

use reqwest::{
    RequestBuilder, StatusCode,
    header::{HeaderMap, LOCATION, SET_COOKIE},
};
use scraper::{ElementRef, Html, Selector};

use crate::service::{PASSWORD, Service, send};

/// A browser without scripts: keeps cookies and sends the headers of a browser.
struct Browser<'a> {
    service: &'a Service,
    cookie: String,
}

struct Page {
    status: StatusCode,
    headers: HeaderMap,
    html: Html,
}

impl<'a> Browser<'a> {
    fn new(service: &'a Service) -> Self {
        Self { service, cookie: String::new() }
    }

    async fn of_user(service: &'a Service, username: &str) -> Self {
        let mut browser = Self::new(service);
        let email = format!("{username}@example.com");
        let fields = [("username", username), ("email", &email), ("password", PASSWORD), ("password_again", PASSWORD)];
        let place = browser.post("/register", &fields).await.place();
        assert!(place.starts_with("/users/profile?done=registered"), "{place}");
        browser
    }

    async fn get(&mut self, path: &str) -> Page {
        self.send(self.service.request("GET", path, "")).await
    }

    async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        self.send(self.service.request("POST", path, "").header("sec-fetch-site", "same-origin").form(fields)).await
    }

    async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let place = self.post(path, fields).await.place();
        self.get(&place).await
    }

    async fn send(&mut self, request: RequestBuilder) -> Page {
        let response = send(request.header("accept", "text/html,*/*;q=0.8").header("cookie", &self.cookie)).await;
        for set in response.headers.get_all(SET_COOKIE) {
            self.keep(set.to_str().unwrap());
        }
        Page { status: response.status, headers: response.headers, html: Html::parse_document(&response.text) }
    }

    /// Keeps a cookie in the place of one with the same name.
    fn keep(&mut self, set: &str) {
        let cookie = set.split(';').next().unwrap();
        let name = |cookie: &str| cookie.split('=').next().unwrap().to_owned();
        let others = self.cookie.split("; ").filter(|kept| !kept.is_empty() && name(kept) != name(cookie));
        self.cookie = others.chain([cookie]).collect::<Vec<_>>().join("; ");
    }
}

impl Page {
    fn place(&self) -> String {
        assert_eq!(self.status, 303, "{}", self.html.html());
        self.headers[LOCATION].to_str().unwrap().to_owned()
    }

    fn all(&self, selector: &str) -> Vec<ElementRef<'_>> {
        self.html.select(&Selector::parse(selector).unwrap()).collect()
    }

    fn text(&self, selector: &str) -> String {
        let found = self.all(selector);
        assert_eq!(found.len(), 1, "{selector} in {}", self.html.html());
        words(found[0])
    }

    fn has(&self, selector: &str) -> bool {
        !self.all(selector).is_empty()
    }

    fn value(&self, selector: &str) -> &str {
        let found = self.all(selector);
        assert_eq!(found.len(), 1, "{selector} in {}", self.html.html());
        found[0].attr("value").unwrap()
    }

    fn check(&self, path: &str) {
        let place = format!("{path}: {}", self.html.html());
        assert_eq!(self.headers["content-type"], "text/html; charset=utf-8", "{place}");
        assert_eq!(self.headers["cache-control"], "no-store", "{place}");
        let policy = self.headers["content-security-policy"].to_str().unwrap();
        for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("script-src") && !self.has("script, [style], [onclick]"), "{place}");
        assert_eq!(self.all("h1").len(), 1, "{place}");
        assert_eq!(self.all("main#content").len(), 1, "{place}");
        assert!(self.has("html[lang]") && self.has("a.skip[href='#content']") && self.has("header nav"), "{place}");
        assert!(self.text("head > title").ends_with("· Airlock"), "{place}");
        self.check_ids(&place);
        self.check_names(&place);
        self.check_headings(&place);
    }

    fn check_ids(&self, place: &str) {
        let ids: Vec<_> = self.all("[id]").iter().filter_map(|element| element.attr("id")).collect();
        let known: BTreeSet<_> = ids.iter().copied().collect();
        assert_eq!(known.len(), ids.len(), "{place}");
        for (selector, attribute) in
            [("[aria-describedby]", "aria-describedby"), ("[aria-labelledby]", "aria-labelledby"), ("label", "for")]
        {
            for id in
                self.all(selector).iter().flat_map(|element| element.attr(attribute)).flat_map(str::split_whitespace)
            {
                assert!(known.contains(id), "{attribute} {id} on {place}");
            }
        }
        for target in self.all("a[href^='#']").iter().filter_map(|link| link.attr("href")) {
            assert!(known.contains(&target[1..]), "{target} on {place}");
        }
    }

    fn check_names(&self, place: &str) {
        let fields = self.all("input:not([type=hidden]), select, textarea");
        for field in fields {
            let id = field.attr("id").unwrap_or_else(|| panic!("a field without an id on {place}"));
            assert!(self.has(&format!("label[for='{id}']")), "{id} on {place}");
        }
        for control in self.all("a, button, summary, legend, label") {
            assert!(!words(control).is_empty(), "{} on {place}", control.html());
        }
        assert_eq!(self.all("img").len(), self.all("img[alt]").len(), "{place}");
        assert!(!self.has("form form"), "{place}");
    }

    fn check_headings(&self, place: &str) {
        let levels = self.all("main h1, main h2, main h3").into_iter().map(|heading| heading.value().name().to_owned());
        let mut before = 2;
        for level in levels.map(|name| name[1..].parse::<u8>().unwrap()) {
            assert!(level <= before + 1, "h{level} after h{before} on {place}");
            before = level;
        }
    }

    fn check_refusal(&self, field: &str) -> String {
        let text = self.text(".problem p");
        assert!(self.text("head > title").starts_with("Error: "), "{}", self.html.html());
        if field.is_empty() {
            assert!(!self.has(".problem a"), "{text}");
        } else {
            assert_eq!(self.all(".problem a")[0].attr("href"), Some(&*format!("#{field}")), "{text}");
            assert!(self.has(&format!("#{field}[aria-describedby~='{field}-wrong']")), "{}", self.html.html());
            assert_eq!(self.text(&format!("[id='{field}-wrong']")), text);
        }
        assert!(self.all("input[type=password]").iter().all(|field| field.attr("value").is_none()));
        text
    }
}

/// The text of an element, with whitespace collapsed.
fn words(element: ElementRef<'_>) -> String {
    element.text().flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}
