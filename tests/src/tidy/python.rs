//! No two modules and no two packages of the Python code need each other.
//!
//! Module A *needs* module B when A imports B, or a name out of B, anywhere in its text: an import in a function counts, because it
//! hides a circle and does not undo it. To import `a.b` needs the package `a` as well, except for the modules within `a`. A package needs
//! another one when one of its modules does. An extension module is known by its stub (`_native.pyi`). What stands outside of the
//! tree needs nothing of ours.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::circles::{Needs, components};

/// The circles of these modules. Each has its path below the folder of the packages, and its text.
#[must_use]
pub fn circles(modules: &[(String, String)]) -> Vec<Finding> {
    let by_name: BTreeMap<String, usize> =
        modules.iter().enumerate().map(|(number, (path, _))| (name_of(path), number)).collect();
    let (mut needs, mut packages) = (Needs::new(), Needs::new());
    let roots: Vec<&str> =
        by_name.keys().map(|name| root_of(name)).collect::<BTreeSet<_>>().into_iter().collect();
    for (path, text) in modules {
        let own = name_of(path);
        for needed in needed(path, text, &by_name) {
            let index = |name: &str| roots.iter().position(|root| *root == root_of(name));
            needs.insert((by_name[&own], by_name[&needed]), needed.clone());
            if let (Some(from), Some(to)) = (index(&own), index(&needed))
                && from != to
            {
                packages.insert((from, to), needed);
            }
        }
    }
    let names: Vec<&str> = modules.iter().map(|(path, _)| path.as_str()).collect();
    let mut found = findings("modules", &names, &needs);
    found.extend(findings("packages", &roots, &packages));
    found
}

fn findings(kind: &str, names: &[&str], needs: &Needs) -> Vec<Finding> {
    let circles = components(names.len(), needs).into_iter();
    let finding = |circle: BTreeSet<usize>| {
        let within =
            needs.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let ties: String = within
            .map(|((from, to), item)| {
                format!("\n    {} needs {} for {item}", names[*from], names[*to])
            })
            .collect();
        let first = circle.first().map_or("", |first| names[*first]);
        Finding {
            location: format!("bindings/python/{first}"),
            message: format!(
                "{} {kind} need each other: give them a third one below both{ties}",
                circle.len()
            ),
        }
    };
    circles.map(finding).collect()
}

/// `a/b.py` is `a.b`, `a/__init__.py` is `a`.
fn name_of(path: &str) -> String {
    let stem = path.trim_end_matches('i').trim_end_matches(".py");
    stem.trim_end_matches("/__init__").replace('/', ".")
}

fn root_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The modules that one needs, itself left out.
fn needed(path: &str, text: &str, known: &BTreeMap<String, usize>) -> BTreeSet<String> {
    let own = name_of(path);
    let package = if path.contains("__init__.py") {
        own.clone()
    } else {
        own.rsplit_once('.').map_or(String::new(), |(package, _)| package.to_owned())
    };
    let mut needed = BTreeSet::new();
    for statement in statements(&without_comments(text)) {
        let words = statement.trim_start();
        if let Some(list) = words.strip_prefix("import ") {
            needed.extend(
                list.split(',')
                    .map(first_word)
                    .filter(|name| known.contains_key(*name))
                    .map(String::from),
            );
        } else if let Some((from, list)) =
            words.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
        {
            let base = absolute(from.trim(), &package);
            for name in list.split(',').map(first_word).filter(|name| !name.is_empty()) {
                let whole =
                    if base.is_empty() { name.to_owned() } else { format!("{base}.{name}") };
                needed.extend(
                    [whole, base.clone()].into_iter().find(|name| known.contains_key(name)),
                );
            }
        }
    }
    let parents: Vec<String> = needed.iter().flat_map(|name| parents_of(name)).collect();
    let is_around = |parent: &String| own == *parent || own.starts_with(&format!("{parent}."));
    needed.extend(
        parents.into_iter().filter(|parent| known.contains_key(parent) && !is_around(parent)),
    );
    needed.remove(&own);
    needed
}

fn first_word(name: &str) -> &str {
    name.trim_matches(['(', ')', ' ']).split_whitespace().next().unwrap_or("")
}

/// The packages in which a module stands.
fn parents_of(name: &str) -> Vec<String> {
    name.match_indices('.').map(|(end, _)| name[..end].to_owned()).collect()
}

/// `..b` in package `a.c` is `a.b`.
fn absolute(from: &str, package: &str) -> String {
    let rest = from.trim_start_matches('.');
    let dots = from.len() - rest.len();
    if dots == 0 {
        return rest.to_owned();
    }
    let mut parts: Vec<&str> = package.split('.').collect();
    parts.truncate((parts.len() + 1).saturating_sub(dots));
    parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
    parts.join(".")
}

/// The text without comments and without what is in strings.
fn without_comments(text: &str) -> String {
    let (mut code, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['#', '"', '\'']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let quote = &rest[..1];
        let end = if quote == "#" {
            rest.find('\n')
        } else if rest.starts_with(&quote.repeat(3)) {
            rest[3..].find(&quote.repeat(3)).map(|end| end + 6)
        } else {
            end_of_string(rest, quote)
        };
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    code + rest
}

/// Where a string that begins here, with one quote, has ended.
fn end_of_string(text: &str, quote: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if !is_escaped && (quote.starts_with(letter) || letter == '\n') {
            return Some(at + 1);
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    None
}

/// The lines, where what is in brackets is one line.
fn statements(code: &str) -> Vec<String> {
    let (mut statements, mut depth) = (vec![String::new()], 0_u32);
    for letter in code.replace("\\\n", " ").chars() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (letter, depth) {
            ('\n' | ';', 0) => statements.push(String::new()),
            ('\n', _) => statements.last_mut().into_iter().for_each(|line| line.push(' ')),
            _ => statements.last_mut().into_iter().for_each(|line| line.push(letter)),
        }
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::circles;

    fn found(modules: &[(&str, &str)]) -> Vec<String> {
        let modules: Vec<_> =
            modules.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        circles(&modules).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn modules_that_need_each_other_are_a_circle() {
        let found_text = found(&[
            ("p/__init__.py", "from .a import x\n"),
            ("p/a.py", "from . import (\n    b,  # the other\n)\n"),
            ("p/b.py", "def f():\n    import p.a as a, os\n"),
        ]);
        assert_eq!(
            found_text,
            [
                "bindings/python/p/a.py: 2 modules need each other: give them a third one below both\n    \
              p/a.py needs p/b.py for p.b\n    p/b.py needs p/a.py for p.a"
            ]
        );
    }

    #[test]
    fn packages_that_need_each_other_are_a_circle_though_their_modules_are_none() {
        let found_text = found(&[
            ("p/__init__.py", ""),
            ("p/a.py", "from q.tools import x\n"),
            ("p/b.py", ""),
            ("q/__init__.py", ""),
            ("q/tools.py", ""),
            ("q/c.py", "from p.b import y"),
        ]);
        assert_eq!(found_text.len(), 1, "{found_text:?}");
        assert!(
            found_text[0].starts_with("bindings/python/p: 2 packages need each other"),
            "{found_text:?}"
        );
        assert!(found_text[0].contains("p needs q for q.tools"), "{found_text:?}");
    }

    #[test]
    fn who_imports_a_module_needs_the_packages_around_it() {
        let modules =
            [("p/__init__.py", "import q.b"), ("q/__init__.py", "import p"), ("q/b.py", "")];
        assert_eq!(found(&modules).len(), 2, "one of modules, one of packages");
        assert!(
            found(&[
                ("p/__init__.py", "from .a import x"),
                ("p/a.py", "import p.b"),
                ("p/b.py", "")
            ])
            .is_empty()
        );
    }

    #[test]
    fn strings_comments_and_stubs_are_told_apart() {
        let none = [
            ("p/__init__.py", "\"\"\"Say\n\n    from p.a import x\n\"\"\"\nfrom .a import x\n"),
            (
                "p/a.py",
                "from . import _native\ns = 'it\\'s # \"'  # import p\nt = '''\nimport p\n'''\n",
            ),
            ("p/_native.pyi", ""),
        ];
        assert!(found(&none).is_empty(), "{:?}", found(&none));
        let behind = [("p/__init__.py", "import p.a"), ("p/a.py", "s = 'a#\"'\nimport p\n")];
        assert_eq!(found(&behind).len(), 1);
    }
}
