//! Files with passwords: one line with the password, or lines like those of `.pgpass`.

/// The password for a host, port, database and user.
pub(super) fn find(file: &str, server: [&str; 4]) -> Option<String> {
    let lines = || file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parsed: Vec<Vec<String>> = lines().map(fields).filter(|fields| fields.len() == 5).collect();
    if parsed.is_empty() {
        return lines().next().map(str::to_owned);
    }
    let fits = |fields: &&Vec<String>| fields.iter().zip(server).all(|(field, value)| field == "*" || field == value);
    parsed.iter().find(fits).and_then(|fields| fields.last().cloned())
}

/// The fields between colons, of which a backslash escapes one that belongs to a field.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut is_escaped) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '\\' if !is_escaped => is_escaped = true,
            ':' if !is_escaped => fields.push(std::mem::take(&mut field)),
            character => {
                field.push(character);
                is_escaped = false;
            }
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_that_of_the_first_line_that_fits_the_server() {
        let server = ["db.example.com", "5432", "chirpstack", "reader"];
        for (file, password) in [
            ("secret\n", Some("secret")),
            ("se:cret\n", Some("se:cret")),
            ("# comment\n*:*:other:*:no\n*:*:*:reader:yes\n*:*:*:*:late\n", Some("yes")),
            ("db.example.com:5432:chirpstack:reader:a\\:b\\\\c\n", Some("a:b\\c")),
            ("localhost:*:*:*:no\n", None),
            ("", None),
        ] {
            assert_eq!(find(file, server).as_deref(), password, "{file}");
        }
    }
}
