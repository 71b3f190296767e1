//! Standard input: JSON lines, or one script.

use std::{
    io::{BufRead, Cursor, Read as _},
    path::Path,
};

use crate::{
    codec::Codec,
    file::{SCRIPT_BYTES_MAX, decode, disk::Disk},
    layout::{BadInput, Found, lines, script::entry},
};

/// Reads what `path` stands for in reports. A JSON line begins with a brace, and hardly any script does.
pub(in super::super) fn read(path: &Path, mut reader: impl BufRead, found: &mut Found) {
    let first = match reader.fill_buf() {
        Ok(start) => start.iter().copied().find(|byte| !byte.is_ascii_whitespace()),
        Err(source) => return found.problem(BadInput::File { file: path.display().to_string(), source }),
    };
    if first.is_none_or(|first| first == b'{') {
        return lines::read_lines(&Disk, path, reader, found);
    }
    let mut bytes = Vec::new();
    if let Err(source) = reader.by_ref().take(SCRIPT_BYTES_MAX + 1).read_to_end(&mut bytes) {
        return found.problem(BadInput::File { file: path.display().to_string(), source });
    }
    let is_whole = bytes.len() as u64 <= SCRIPT_BYTES_MAX;
    match decode(bytes.clone()).ok().filter(|text| is_whole && entry::is_script(text)) {
        Some(script) => found.codec(Codec::new(path.display().to_string(), script, None)),
        None => lines::read_lines(&Disk, path, Cursor::new(bytes).chain(reader), found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::MEMORY_BYTES_MAX;

    fn read_text(text: &[u8]) -> (Vec<(String, String)>, usize) {
        let mut found = Found::new(None, MEMORY_BYTES_MAX);
        read(Path::new("-"), text, &mut found);
        (found.codecs.into_iter().map(|codec| (codec.id, codec.script)).collect(), found.problems.len())
    }

    #[test]
    fn a_script_is_told_from_json_lines() {
        let script = "// A decoder.\nfunction decodeUplink() { return {}; }\n";
        assert_eq!(read_text(script.as_bytes()), (vec![("-".to_owned(), script.to_owned())], 0));
        let (codecs, problems) = read_text(b"{\"id\": \"a\", \"script\": \";\"}\n{\"script\": \";\"}\n");
        assert_eq!((codecs.len(), problems), (2, 0));
        assert_eq!(read_text(b""), (Vec::new(), 0));
        assert_eq!(read_text(b"start();\nstop();\n"), (Vec::new(), 2));
        assert_eq!(read_text("x".repeat(SCRIPT_BYTES_MAX as usize + 2).as_bytes()).0, Vec::new());
    }
}
