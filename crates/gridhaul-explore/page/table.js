// Tables, of which each cell is a text or an element.

/** A cell. */
export function cell(kind, content, className = "") {
  const made = document.createElement(kind);
  made.append(content);
  if (className) made.className = className;
  return made;
}

/**
 * Fills a table. `headings`: texts, those of numbers in `[text]`. `rows`: contents of the cells; the
 * cell of the column `rowHeading`, if there is one, names its row for screen readers. `empty`: a
 * sentence in the place of rows.
 */
export function fillTable(table, { headings, rows, rowHeading = -1, empty = "none" }) {
  const isNumber = headings.map((heading) => Array.isArray(heading));
  const head = document.createElement("tr");
  head.append(...headings.map((heading, column) => {
    const made = cell("th", isNumber[column] ? heading[0] : heading, isNumber[column] ? "n" : "");
    made.scope = "col";
    return made;
  }));
  const body = rows.map((contents) => {
    const row = document.createElement("tr");
    row.append(...contents.map((content, column) => {
      const made = cell(column === rowHeading ? "th" : "td", content, isNumber[column] ? "n" : "");
      if (column === rowHeading) made.scope = "row";
      return made;
    }));
    return row;
  });
  if (!rows.length) {
    const row = document.createElement("tr");
    const none = cell("td", empty);
    none.colSpan = headings.length;
    row.append(none);
    body.push(row);
  }
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...body);
}
