/*
 * base/banned.h: included before every source file outside base/: these functions do not compile.
 * Memory comes from an arena, texts from strbuf, numbers from text_to_*.
 */
#ifndef FSDPSIM_BASE_BANNED_H
#define FSDPSIM_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BANNED(function) function##_is_banned_see_base_banned_h

#undef malloc
#undef calloc
#undef realloc
#undef free
#define malloc(...) BANNED(malloc)
#define calloc(...) BANNED(calloc)
#define realloc(...) BANNED(realloc)
#define free(...) BANNED(free)
#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#define strcpy(...) BANNED(strcpy)
#define strcat(...) BANNED(strcat)
#define strncpy(...) BANNED(strncpy)
#define strncat(...) BANNED(strncat)
#undef sprintf
#undef vsprintf
#define sprintf(...) BANNED(sprintf)
#define vsprintf(...) BANNED(vsprintf)
#undef atoi
#undef atol
#undef atof
#undef strtol
#undef strtoll
#undef strtoul
#undef strtod
#define atoi(...) BANNED(atoi)
#define atol(...) BANNED(atol)
#define atof(...) BANNED(atof)
#define strtol(...) BANNED(strtol)
#define strtoll(...) BANNED(strtoll)
#define strtoul(...) BANNED(strtoul)
#define strtod(...) BANNED(strtod)
#undef gets
#undef strtok
#define strtok(...) BANNED(strtok)

#endif
