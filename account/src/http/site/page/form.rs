//! Forms: the fields that a browser sent, and forms to show again with an error.

use axum::{
    extract::{FromRequest, Request},
    http::StatusCode,
};
use server::site::sentence;
use types::{IdError, Kind, Kinded, Secret};

use crate::{
    Account, Error,
    http::{body::AnyBody, error::HttpError},
};

/// The fields of a form, in their order.
#[derive(Debug, Default)]
pub(in crate::http::site) struct Fields(Vec<(String, Secret)>);

/// The values of a form on a page, and its error.
#[derive(Debug, Default)]
pub(in crate::http::site) struct Form {
    values: Vec<(String, String)>,
    problem: Option<Problem>,
}

#[derive(Debug)]
pub(in crate::http::site) struct Problem {
    /// The name and id of the field; empty if the error is about the whole form.
    pub(in crate::http::site) field: &'static str,
    /// A complete sentence.
    pub(in crate::http::site) text: String,
}

impl FromRequest<Account> for Fields {
    type Rejection = HttpError;

    async fn from_request(request: Request, account: &Account) -> Result<Self, HttpError> {
        AnyBody::from_request(request, account).await.map(|AnyBody(fields)| Self(fields))
    }
}

impl Fields {
    /// The trimmed value of a field; empty if it was not sent.
    pub(in crate::http::site) fn text(&self, name: &str) -> &str {
        self.find(name).map_or("", |value| value.expose().trim())
    }

    /// Like [`Fields::text`], but `None` if it is empty.
    pub(in crate::http::site) fn filled(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// An untrimmed value, for passwords.
    pub(in crate::http::site) fn secret(&self, name: &str) -> Secret {
        self.find(name).cloned().unwrap_or_default()
    }

    pub(in crate::http::site) fn ticked(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// All values of a field.
    pub(in crate::http::site) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.expose())
    }

    fn find(&self, name: &str) -> Option<&Secret> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Form {
    pub(in crate::http::site) fn with<'a>(values: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { values, problem: None }
    }

    /// The form as sent, with an error, but without passwords.
    ///
    /// Returns errors that the user did not cause.
    pub(in crate::http::site) fn refused(fields: &Fields, error: Error) -> Result<(Self, StatusCode), Error> {
        let status = server::status::http(error.kind());
        let user_errors =
            [Kind::Invalid, Kind::Unauthenticated, Kind::Denied, Kind::NotFound, Kind::AlreadyExists, Kind::Exhausted];
        if !user_errors.contains(&error.kind()) {
            return Err(error);
        }
        let open = fields.0.iter().filter(|(name, _)| !name.contains("password"));
        let values = open.map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        let problem = Problem { field: field_of(&error), text: sentence(&error.to_string()) };
        Ok((Self { values, problem: Some(problem) }, status))
    }

    /// An empty form with an error.
    pub(in crate::http::site) fn failed(error: &Error) -> Self {
        Self { values: Vec::new(), problem: Some(Problem { field: "", text: sentence(&error.to_string()) }) }
    }

    pub(in crate::http::site) fn value(&self, name: &str) -> &str {
        self.values.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(in crate::http::site) fn ticked(&self, name: &str, value: &str) -> bool {
        self.values.iter().any(|(known, ticked)| known == name && ticked == value)
    }

    pub(in crate::http::site) fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    pub(in crate::http::site) fn problem_of(&self, name: &str) -> Option<&str> {
        self.problem.as_ref().filter(|problem| problem.field == name).map(|problem| problem.text.as_str())
    }
}

fn field_of(error: &Error) -> &'static str {
    let what = match error {
        Error::Invalid { what, .. } | Error::Taken { what, .. } | Error::NotFound { what, .. } => what,
        Error::Id(IdError::Empty { what } | IdError::Format { what }) => what,
        Error::EuiTaken(_) => "EUI",
        Error::WrongPassword => "old password",
        Error::Escalation(_) | Error::LastCollaborator(_) => "rights",
        _ => "",
    };
    match what {
        "Username" | "username" | "user" => "username",
        "AppID" | "GatewayID" | "application" | "gateway" => "id",
        "key name" | "access key" => "key_name",
        "EUI" => "eui",
        "location" => "latitude",
        "old password" => "old_password",
        "email" => "email",
        "name" => "name",
        "password" => "password",
        "second password" => "password_again",
        "rights" => "rights",
        "frequency_plan" => "frequency_plan",
        "latitude" => "latitude",
        "longitude" => "longitude",
        "altitude" => "altitude",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_form_keeps_its_values_except_passwords() {
        let fields = [("username", "alice"), ("password", "hush"), ("old_password", "hush")];
        let fields = Fields(fields.map(|(name, value)| (name.to_owned(), Secret::new(value))).to_vec());
        let (form, status) = Form::refused(&fields, Error::WrongPassword).unwrap();
        assert_eq!((form.value("username"), status), ("alice", StatusCode::FORBIDDEN));
        assert!(!format!("{form:?}").contains("hush"));
        assert!(form.problem_of("old_password").unwrap().ends_with('.'));
        assert!(Form::refused(&fields, Error::Crypto("seal")).is_err());
    }
}
