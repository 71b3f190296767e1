//! Access rights: every operation with every kind of credential, compared with `access_matrix/table.md`.

mod credentials;

use std::collections::BTreeSet;

use serde_json::Value;

use self::credentials::{Credentials, Shown};
use crate::service::{Service, TestResponse, send};

const TABLE: &str = include_str!("access_matrix/table.md");

/// A row of the table: a request, and the status for each credential.
struct Row {
    method: String,
    path: String,
    body: String,
    expected: Vec<u16>,
}

fn table() -> (Vec<String>, Vec<Row>) {
    let mut lines = TABLE.lines().filter(|line| line.starts_with('|')).map(cells);
    let header = lines.next().unwrap();
    assert_eq!((&header[0][..], &header[1][..], header.last().unwrap().as_str()), ("method", "path", "body"));
    let columns = header[2..header.len() - 1].to_vec();
    let rows = lines.skip(1).map(|cells| {
        assert_eq!(cells.len(), header.len(), "{cells:?}");
        let expected = cells[2..cells.len() - 1].iter().map(|status| status.parse().unwrap()).collect();
        let (method, path, body) = (cells[0].clone(), cells[1].clone(), cells.last().unwrap().clone());
        Row { method, path, body, expected }
    });
    (columns, rows.collect())
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
}

// Conformance: Of applications: `settings`, `delete`, `collaborators`, `messages:up:r`
// Conformance: PATCH /gateways/{gw_id}; 400, 401, 403, 404
// Conformance: DELETE /gateways/{gw_id}; 401, 403, 404
// Conformance: GET /gateways/{gw_id}/collaborators
// Conformance: GET, PUT, DELETE /gateways/{gw_id}/collaborators/{username}; 400, 401, 403, 404
// Conformance: A path with an id needs the scope for that id
// Conformance: The user needs the rights at the time of the request
// Conformance: A session is an encrypted, HTTP-only
// Conformance: An access key, `Authorization: Key …`
// Conformance: The body is `{code, error}`
// Conformance: 401, 403, 404
#[tokio::test]
async fn every_operation_matches_the_table_for_every_credential() {
    for service in Service::start_on_each_store().await {
        let credentials = Credentials::make(&service).await;
        let (columns, rows) = table();
        assert_eq!(columns, credentials::NAMES);
        let mut wrong = Vec::new();
        for row in &rows {
            let statuses = responses(&service, &credentials, row).await;
            if statuses != row.expected {
                let shown: Vec<_> = statuses.iter().map(u16::to_string).collect();
                wrong.push(format!("| {} | `{}` | {} | `{}` |", row.method, row.path, shown.join(" | "), row.body));
            }
        }
        assert!(wrong.is_empty(), "{} rows differ; what was received:\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// Sends the request with every credential.
///
/// Refused ones come first: if they had an effect, the other responses would show it.
async fn responses(service: &Service, credentials: &Credentials, row: &Row) -> Vec<u16> {
    let mut order: Vec<_> = (0..row.expected.len()).collect();
    order.sort_by_key(|column| row.expected[*column] < 400);
    let mut statuses = vec![0; order.len()];
    for column in order {
        let response = call(service, row, credentials.show(column, &row.path), column).await;
        statuses[column] = response.status.as_u16();
        if response.status.as_u16() >= 400 {
            assert_eq!(response.json()["code"], response.status.as_u16(), "{} {}: {response:?}", row.method, row.path);
        }
    }
    statuses
}

async fn call(service: &Service, row: &Row, shown: Shown<'_>, column: usize) -> TestResponse {
    let request = match shown {
        Shown::Authorization(value) => service.request(&row.method, &row.path, value),
        // Like a browser on a page of the site.
        Shown::Cookie(value) => {
            let request = service.request(&row.method, &row.path, "").header("cookie", value);
            request.header("origin", &service.base)
        }
    };
    if row.body.is_empty() {
        return send(request).await;
    }
    let body = row.body.replace("{column}", &format!("c{column}"));
    send(request.json(&serde_json::from_str::<Value>(&body).unwrap())).await
}

#[tokio::test]
async fn the_table_has_every_operation() {
    let service = Service::start().await;
    let document = service.get("/api/v2/openapi.json", "").await.json();
    let (_, rows) = table();
    let mut called = BTreeSet::new();
    for (path, calls) in document["paths"].as_object().unwrap() {
        for method in calls.as_object().unwrap().keys() {
            let found = rows.iter().position(|row| row.method.to_lowercase() == *method && fits(path, &row.path));
            called.insert(found.unwrap_or_else(|| panic!("the table lacks {method} {path}")));
        }
    }
    assert!(called.len() > 60, "{}", called.len());
}

fn fits(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap();
    let (template, path) = (template.split('/'), path.split('/'));
    template.clone().count() == path.clone().count()
        && template.zip(path).all(|(part, is)| part == is || part.starts_with('{') && is != "token")
}
