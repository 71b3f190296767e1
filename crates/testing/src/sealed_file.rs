//! Parquet files of history.

/// Returns the same file without checksums, as earlier versions wrote it.
///
/// # Panics
///
/// If the file has none.
pub fn without_checksums(file: &[u8]) -> Vec<u8> {
    let (file, last) = file.split_at(file.len() - 8);
    // Behind the table are its length, a checksum, a name, and the end of the description.
    assert_eq!(&file[file.len() - 9..], b"airlock1\0", "the file has checksums");
    let table_end = file.len() - 17;
    let count = u32::from_le_bytes(file[table_end..][..4].try_into().unwrap()) as usize;
    let field_bytes = count * 4 + 16;
    let head_bytes = 4 + field_bytes.ilog2() as usize / 7 + 1;
    let length = u32::from_le_bytes(last[..4].try_into().unwrap()) - (head_bytes + field_bytes) as u32;
    [&file[..table_end - count * 4 - head_bytes], b"\0", &length.to_le_bytes(), b"PAR1"].concat()
}
