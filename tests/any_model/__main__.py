from tests.any_model import TABLES, lines

if __name__ == "__main__":
    TABLES.write_text("\n".join(lines()) + "\n")
