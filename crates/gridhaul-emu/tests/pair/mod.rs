//! The two-node network of most tests.

/// Two nodes and a link between them, followed by `flows`.
pub(crate) fn pair(link: &str, flows: &str) -> String {
    format!(
        "title = 'test'\n\
         [node]\nnear = {{}}\nfar = {{}}\n\
         [link.wire]\nfrom = 'near'\nto = 'far'\n{link}\n\
         {flows}"
    )
}
