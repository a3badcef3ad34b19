"""The N+1 pattern: one query for the authors, and one more for the books of each."""

import sqlite3
import sys

count = int(sys.argv[1])
base = sqlite3.connect(":memory:")
base.execute("CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT)")
base.execute("CREATE TABLE book (author INTEGER, title TEXT)")
base.executemany("INSERT INTO author (name) VALUES (?)", [(f"O'Brien the {number}.",) for number in range(count)])
for (author,) in base.execute("SELECT id FROM author").fetchall():
    base.execute("SELECT title FROM book WHERE author = ?", (author,)).fetchall()
base.commit()
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
