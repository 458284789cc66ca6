# embed_pages: a text file as a constant of a header, in pieces that every compiler accepts.
file(READ ${FROM} text)
string(LENGTH "${text}" length)
set(pieces "")
set(start 0)
while(start LESS length)
  string(SUBSTRING "${text}" ${start} 4000 piece)
  string(APPEND pieces "    R\"page(${piece})page\"\n")
  math(EXPR start "${start} + 4000")
endwhile()
file(WRITE ${TO}
     "// Generated from docs/FINDINGS.md.\n#pragma once\n\n#include <string_view>\n\nnamespace hf::report {\n\ninline constexpr std::string_view kFindingsPages =\n${pieces}    ;\n\n}  // namespace hf::report\n")
