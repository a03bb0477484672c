R"x(a)x" "b\"" 'c' 1'0 \
<% %> ??= #line 3
/* open
