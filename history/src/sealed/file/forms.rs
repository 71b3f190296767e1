//! The structures of Parquet: what the `parquet` crate reads of them, in the types in which it does.

use super::compact::Form::{self, Bool, Byte, Bytes, Count, List, Never, Number, ShortList, Struct};

/// Maximum number of columns and groups of a schema, which may all be in each other: the crate calls itself for each.
/// Ours have 41.
const SCHEMA_ELEMENTS_MAX: usize = 128;

/// The description of a file, at its end.
pub(super) const FILE: &[(i16, Form)] = &[
    (1, Number),
    (2, ShortList(SCHEMA_ELEMENTS_MAX, &SCHEMA_ELEMENT)),
    (3, Number),
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Bytes),
    (7, List(&ANY)),
    (8, ANY),
    (9, Bytes),
    // The checksums, unless they were found: they are damaged.
    (i16::MAX, Never),
];

/// Where the pages of a column are.
pub(super) const OFFSET_INDEX: &[(i16, Form)] = &[(1, List(&PAGE_LOCATION)), (2, List(&Number))];

pub(super) const PAGE_HEADER: &[(i16, Form)] = &[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Number),
    (5, Struct(&[(1, Number), (2, Number), (3, Number), (4, Number), (5, STATISTICS)])),
    (6, ANY),
    (7, Struct(&[(1, Number), (2, Number), (3, Bool)])),
    (
        8,
        Struct(&[
            (1, Number),
            (2, Number),
            (3, Number),
            (4, Number),
            (5, Number),
            (6, Number),
            (7, Bool),
            (8, STATISTICS),
        ]),
    ),
];

const ANY: Form = Struct(&[]);
const PAGE_LOCATION: Form = Struct(&[(1, Number), (2, Number), (3, Number)]);
const KEY_VALUE: Form = Struct(&[(1, Bytes), (2, Bytes)]);

const SCHEMA_ELEMENT: Form = Struct(&[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Bytes),
    // The crate makes room for so many children.
    (5, Count),
    (6, Number),
    (7, Number),
    (8, Number),
    (9, Number),
    (10, LOGICAL_TYPE),
]);
/// One field of these; those that are left out have no fields of their own.
const LOGICAL_TYPE: Form = Struct(&[
    (5, Struct(&[(1, Number), (2, Number)])),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Bytes)])),
    (18, Struct(&[(1, Bytes), (2, Number)])),
]);
const TIME: Form = Struct(&[(1, Bool), (2, ANY)]);

const ROW_GROUP: Form = Struct(&[
    (1, List(&COLUMN_CHUNK)),
    (2, Number),
    (3, Number),
    (4, List(&Struct(&[(1, Number), (2, Bool), (3, Bool)]))),
    (5, Number),
    (6, Number),
    (7, Number),
]);
const COLUMN_CHUNK: Form = Struct(&[
    (1, Bytes),
    (2, Number),
    (3, COLUMN),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, ANY),
    (9, Bytes),
]);
const COLUMN: Form = Struct(&[
    (1, Number),
    (2, List(&Number)),
    (3, List(&Bytes)),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, List(&KEY_VALUE)),
    (9, Number),
    (10, Number),
    (11, Number),
    (12, STATISTICS),
    (13, List(&Struct(&[(1, Number), (2, Number), (3, Number)]))),
    (14, Number),
    (15, Number),
    (16, Struct(&[(1, Number), (2, List(&Number)), (3, List(&Number))])),
    (17, ANY),
]);
const STATISTICS: Form = Struct(&[
    (1, Bytes),
    (2, Bytes),
    (3, Number),
    (4, Number),
    (5, Bytes),
    (6, Bytes),
    (7, Bool),
    (8, Bool),
    (9, Number),
]);
